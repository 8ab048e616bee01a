from __future__ import annotations

import itertools
import json

import pytest

from dragstrip.errors import BadInputError
from dragstrip.experiment import catalogue
from dragstrip.studies.sweep.build import run_key
from dragstrip.studies.sweep.coordinate import missing
from dragstrip.studies.sweep.plan import Index, Sweep, describe

from .conftest import plan

AXES = ("path.rate=1mbit,2mbit", "path.rtt=10ms,20ms", "flow.cc=reno,cubic")


def test_every_combination_with_every_seed() -> None:
    sweep = plan(*AXES, repeat=3)
    index = Index(sweep)
    assert (sweep.points, sweep.runs, len(index)) == (8, 24, 24)
    assert len(set(index.all_keys())) == 24
    assert [sweep.run(number).key for number in range(24)] == list(index.all_keys())


def test_contenders_meet_the_same_seeds() -> None:
    sweep = plan("flow.cc=reno,cubic", repeat=2, seed=7)
    seeds = [json.loads(sweep.run(number).text)["seed"] for number in range(4)]
    assert seeds == [7, 8, 7, 8]


def test_the_same_run_has_the_same_key_however_it_is_described() -> None:
    plainly = plan("path.rate=2mbit")
    widened = plan("path.rate=1mbit,2mbit,4mbit", "path.rtt=20ms,40ms", "path.queue=bfifo limit 30720b")
    assert Index(plainly).key(0) in set(Index(widened).all_keys())


def test_a_key_knows_scenario_engine_and_version() -> None:
    keys = {
        run_key(*given)
        for given in [("a", "sim", "1"), ("b", "sim", "1"), ("a", "vm", "1"), ("a", "sim", "2")]
    }
    assert len(keys) == 4


def test_a_sweep_is_read_back_as_it_was_written() -> None:
    sweep = plan(*AXES, "path.queue=bfifo limit 1bdp", repeat=2, competitor="cubic")
    again = Sweep.read(json.loads(json.dumps(sweep.document())), "sweep.json")
    assert list(Index(again).all_keys()) == list(Index(sweep).all_keys())


def test_shards_share_out_every_run_once() -> None:
    index = Index(plan(*AXES, repeat=5))
    parts = [missing(index, set(), (part, 3))[0] for part in (1, 2, 3)]
    assert sorted(itertools.chain(*parts)) == list(range(40))
    assert all(parts)


def test_a_queue_in_bandwidth_delay_products() -> None:
    sweep = plan("path.rate=1mbit,8mbit", "path.queue=bfifo limit 0.5bdp,bfifo limit 2bdp")
    limits = []
    for point in range(4):
        links = json.loads(sweep.at(point)[0].text)["links"]
        (queue,) = [link["qdisc"]["leaf"] for link in links if link["name"] == "r-w" or link["name"] == "r-d"]
        limits.append(queue["limit_bytes"])
    # 1 Mbit/s × 20 ms = 2500 B, but three frames at least; 8 Mbit/s × 20 ms = 20 kB.
    assert limits == [4542, 5000, 10_000, 40_000]


def test_a_rival_runs_beside_every_contender() -> None:
    sweep = plan("flow.cc=reno,cubic", competitor="cubic")
    flows = [[flow["label"] for flow in json.loads(sweep.run(number).text)["flows"]] for number in range(4)]
    assert flows == [["reno"], ["reno", "competitor"], ["cubic"], ["cubic", "competitor"]]
    with pytest.raises(BadInputError, match="--competitor"):
        plan("flow.cc=reno,bbr", competitor="cubic")


def test_what_varies_wrongly_is_named_with_its_value() -> None:
    with pytest.raises(BadInputError, match=r"cubik.*flows\.cc = 'cubik'"):
        Index(plan("flow.cc=reno,cubik"))
    with pytest.raises(BadInputError, match="not a known field"):
        Index(plan("path.rates=1mbit"))
    with pytest.raises(BadInputError, match="--seed"):
        plan("seed=1,2")


def profiles_of(engine: str) -> set[str]:
    described, source = catalogue.load("bu-cs655-2022/to-router")
    scenario = describe(described, source, engine=engine, vary=["flows.cc=reno,cubic"]).scenario(0).document()
    return {node["profile"] for node in scenario["nodes"] if node["kind"] == "host"}


@pytest.mark.usefixtures("linux")
def test_an_older_linux_runs_as_the_kernels_own_where_the_command_line_chooses_the_kernel() -> None:
    assert profiles_of("vm") == {"linux-6"}


def test_an_older_linux_stays_itself_in_the_simulator() -> None:
    assert profiles_of("sim") == {"linux-4.15"}
