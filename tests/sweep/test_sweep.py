"""Sweeps from the command line to the files, with the simulator."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from dragstrip.engines.sim import simulate
from dragstrip.io.files import read_json
from dragstrip.model.recording import read
from dragstrip.results.measures import summarise
from dragstrip.studies.sweep import command as sweep_command
from dragstrip.studies.sweep import make
from dragstrip.studies.sweep import map as sweep_map
from dragstrip.studies.sweep.dataset import read as read_dataset
from dragstrip.studies.sweep.figures import figures
from dragstrip.studies.sweep.plan import Sweep
from dragstrip.studies.sweep.stats import judge

from .conftest import Command, command

ROOT = Path(__file__).parents[2]
AXES = [
    "--vary",
    "path.rate=1mbit,2mbit",
    "--vary",
    "path.rtt=10ms,40ms",
    "--vary",
    "flow.cc=reno,cubic,vegas",
]
SMALL = [*AXES, "--repeat", "3"]


def digest(folder: Path) -> str:
    """Of the dataset's bytes."""
    (file,) = (folder / "dataset").glob("*.parquet")
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_same_bytes_whatever_the_workers_or_the_order(sweep: Command, tmp_path: Path) -> None:
    for name, workers in (("one", "1"), ("three", "3")):
        sweep(*SMALL, "--out", name, "--workers", workers, "--no-report")
    assert digest(tmp_path / "one") == digest(tmp_path / "three")


def test_a_sweep_again_makes_nothing_and_a_wider_one_only_what_is_new(sweep: Command, tmp_path: Path) -> None:
    def made(*words: str) -> tuple[int, int]:
        document = json.loads(sweep(*words, "--out", "out", "--json", "--no-report").stdout)
        return document["reused"], document["made"]

    assert made(*AXES) == (0, 12)
    assert made(*AXES) == (12, 0)
    assert made(*AXES, "--repeat", "2") == (12, 12)
    wider = [words.replace("40ms", "40ms,80ms") for words in AXES]
    assert made(*wider, "--repeat", "2", "--vary", "path.queue=bfifo limit 30kb,bfifo limit 60kb") == (24, 48)
    sweep(*wider, "--repeat", "2", "--out", "fresh", "--no-report")
    assert made(*wider, "--repeat", "2", "--replace") == (36, 0)
    assert digest(tmp_path / "fresh") == digest(tmp_path / "out")


def test_shards_merge_by_copying(sweep: Command, tmp_path: Path) -> None:
    sweep(*SMALL, "--out", "whole", "--no-report")
    for part in ("1", "2", "3"):
        sweep(*SMALL, "--out", f"shard{part}", "--shard", f"{part}/3")
        shutil.copytree(tmp_path / f"shard{part}", tmp_path / "merged", dirs_exist_ok=True)
    # Readable by one path before anything else is done:
    apart = pq.read_table(tmp_path / "merged" / "dataset")
    whole = pq.read_table(tmp_path / "whole" / "dataset")
    assert apart.sort_by([("run", "ascending"), ("flow", "ascending")]).equals(whole)
    document = json.loads(sweep(*SMALL, "--out", "merged", "--json").stdout)
    assert document["made"] == 0
    assert digest(tmp_path / "merged") == digest(tmp_path / "whole")


def test_figures_are_those_of_a_single_run(sweep: Command, tmp_path: Path) -> None:
    sweep(*SMALL, "--out", "out", "--no-report")
    store = pq.read_table(tmp_path / "out" / "store").to_pylist()
    rows = pq.read_table(tmp_path / "out" / "dataset").to_pylist()
    scenarios = {row["key"]: json.loads(row["scenario"]) for row in store}
    for row in rows[::7]:
        recording = simulate(scenarios[row["key"]])
        expected = figures(summarise(recording))
        assert recording.provenance["recording_sha256"] == row["recording_sha256"]
        for name, value in {**expected["run"], **expected["flows"][0]}.items():
            assert row[name] == value, name


def test_a_run_is_made_again_from_its_key(sweep: Command, tmp_path: Path) -> None:
    sweep(*SMALL, "--out", "out")
    rows = pq.read_table(tmp_path / "out" / "dataset").to_pylist()
    page = (tmp_path / "out" / "report.html").read_text()
    words = re.findall(r"dragstrip sweep (--replay \w+ --from out --out \w+)", page)[0].split()
    (row,) = [row for row in rows if row["key"].startswith(words[1])]
    subprocess.run(command(*words), cwd=tmp_path, check=True, capture_output=True, timeout=60)
    again = read(tmp_path / words[-1])
    assert again.provenance["recording_sha256"] == row["recording_sha256"]


def test_recordings_are_kept_on_request(sweep: Command, tmp_path: Path) -> None:
    sweep("--vary", "flow.cc=reno,cubic", "--out", "out", "--keep-recordings", "--no-report")
    for row in pq.read_table(tmp_path / "out" / "dataset").to_pylist():
        kept = read(tmp_path / "out" / "recordings" / row["key"])
        assert kept.provenance["recording_sha256"] == row["recording_sha256"]


def test_a_dry_run_writes_nothing(sweep: Command, tmp_path: Path) -> None:
    said = sweep(*SMALL, "--dry-run", "--out", "out").stdout
    assert "36 runs" in said
    assert not (tmp_path / "out").exists()
    forecast = json.loads(sweep(*SMALL, "--dry-run", "--out", "out", "--json").stdout)
    assert forecast["to_make"] == 36
    assert forecast["cpu_s"] > 0


def test_a_trial_of_a_dry_run_ends_with_its_time(
    sweep: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And counts the packets until then, so that the forecast of a long run is not a run of it."""
    sweep("--vary", "flow.cc=reno", "--out", "out", "--no-report")
    described = Sweep.read(read_json(tmp_path / "out" / "sweep.json"), "")
    run = described.run(0)
    whole, _ = sweep_command._trial(described, 0)
    assert whole == run.weight
    monkeypatch.setattr(sweep_command, "TRIAL_RUN_S", 0.0)
    part, cpu_s = sweep_command._trial(described, 0)
    assert 0 < part < 0.9 * run.weight
    assert cpu_s > 0


def test_bad_input_writes_nothing(sweep: Command, tmp_path: Path) -> None:
    for words in (
        ["--vary", "flow.cc=cubik"],
        ["--shard", "4/3"],
        ["--vary", "path.rtt=1ms..2ms"],
        ["--memory-limit", "1mb"],
    ):
        said = sweep(*words, "--out", "out", status=2).stderr
        assert said.startswith("error: ")
        assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    sweep(*AXES, "--out", "taken", status=2)


def test_the_report_has_the_map_the_ranking_and_every_run(sweep: Command, tmp_path: Path) -> None:
    sweep(*SMALL, "--competitor", "cubic", "--out", "out")
    page = (tmp_path / "out" / "report.html").read_text()
    for heading in (
        "Most goodput",
        "Least delay",
        "Most power",
        "Least harm to cubic",
        "Ranking",
    ):
        assert heading in page
    # For wide and narrow screens: maps, each contender's harm, lines and their legends; and the scale of harm.
    assert page.count("<svg") == 2 * (4 + 3 + 4 * (2 + 1)) + 1
    words = [sys.executable, "-m", "tools.sweep_guide", "out", "guide.md"]
    subprocess.run(words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, timeout=60)
    guide = (tmp_path / "guide.md").read_text()
    assert re.search(
        r"^- For most goodput \*\*use `\w+`\*\*: among the best on \d+ of \d+ paths", guide, re.MULTILINE
    )
    for name in ("goodput", "delay", "power", "harm"):
        assert f"](images/guide-{name}.svg)" in guide
        assert (tmp_path / "images" / f"guide-{name}.svg").read_text().count("<rect") >= 8
    links = set(re.findall(r'href="(cells/[0-9a-f]+/\d+\.html)#(c\d+)"', page))
    assert len(links) == 4
    text = "".join((tmp_path / "out" / file).read_text() for file in sorted({file for file, _ in links}))
    assert all(f'id="{anchor}"' in text for _, anchor in links)
    keys = {row["key"] for row in pq.read_table(tmp_path / "out" / "dataset").to_pylist()}
    assert len(keys) == 4 * 3 * 2 * 3
    assert all(f"--replay {key[:16]}" in text for key in keys)


def test_figures_for_papers_are_as_wide_as_asked_and_have_their_numbers(
    sweep: Command, tmp_path: Path
) -> None:
    sweep(*SMALL, "--competitor", "cubic", "--out", "out", "--figures", "svg,pdf,csv", "--width", "84mm")
    figures = tmp_path / "out" / "figures"
    stems = {"goodput", "delay", "power", "harm"}
    pictures = stems | {f"{stem}-lines" for stem in stems} | {"harm-by-contender"}
    assert {file.name for file in figures.iterdir()} == (
        {f"{stem}.{ending}" for stem in pictures for ending in ("svg", "pdf")}
        | {f"{stem}.csv" for stem in stems}
    )
    for stem in pictures:
        head, _, body = (figures / f"{stem}.svg").read_text().partition(">")
        assert 'width="238.11pt"' in head
        across = float(re.findall(r'viewBox="\S+ \S+ (\S+) ', head)[0])
        assert min(map(float, re.findall(r'font-size="([\d.]+)"', body))) * 238.11 / across >= 6.0, stem
        assert b"/MediaBox [0 0 238.1" in (figures / f"{stem}.pdf").read_bytes()
    heads, *rows = (figures / "goodput.csv").read_text().splitlines()
    assert heads == "path.rate,path.rtt,contender,goodput (bit/s),low,high,among the best"
    assert len(rows) == 2 * 2 * 3
    table = pq.read_table(tmp_path / "out" / "dataset").to_pylist()
    goodputs = sorted(
        row["goodput_bps"]
        for row in table
        if (row["path_rate_bps"], row["path_rtt_ns"], row["cc"], row["against"])
        == (1_000_000, 10_000_000, "reno", "alone")
    )
    assert float(rows[0].split(",")[3]) == pytest.approx(goodputs[1], rel=1e-5)
    words = [word if word != "sweep" else "report" for word in command("out", "--figures", "svg")]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert {file.suffix for file in figures.iterdir()} == {".svg"}


@pytest.mark.parametrize(("queues", "lines"), [("0.5bdp,1bdp,2bdp", True), ("0.5bdp,1bdp,fq_codel", False)])
def test_queues_in_bdp_are_drawn_as_lines(sweep: Command, tmp_path: Path, queues: str, lines: bool) -> None:
    words = ["--vary", f"path.queue={queues}", "--vary", "flow.cc=reno,cubic"]
    sweep(*words, "--out", "out", "--figures", "svg")
    page = (tmp_path / "out" / "report.html").read_text()
    assert ("As lines" in page) == lines
    assert ("path.queue (BDP)" in page) == lines
    assert (tmp_path / "out" / "figures" / "goodput-lines.svg").exists() == lines


def test_a_map_and_the_runs_that_it_leads_to_are_replaced_at_once(
    sweep: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at any step of writing another one, the old map leads to its own runs."""
    sweep(*SMALL, "--out", "out")
    page = (tmp_path / "out" / "report.html").read_text()
    linked = sorted({tmp_path / "out" / file for file in re.findall(r'href="(cells/[^"#]+)', page)})
    pages = [file.read_text() for file in linked]
    more = [*SMALL[:-1], str(int(SMALL[-1]) + 1)]
    sweep(*more, "--out", "out", "--no-report")

    class Killed(BaseException):
        pass

    steps = 0

    def dying(real: Callable[..., Any], last: int) -> Callable[..., Any]:
        def step(*given: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps > last:
                raise Killed
            return real(*given)

        return step

    for last in range(2):  # before the runs' pages take their place, and between them and the map
        steps = 0
        with monkeypatch.context() as patched:
            patched.setattr(sweep_map, "move_in", dying(sweep_map.move_in, last))
            patched.setattr(Path, "replace", dying(Path.replace, last))
            patched.setattr(make.dataset, "write", lambda *_, **__: Path("unchanged"))
            with pytest.raises(Killed):
                make.rewrite_report(tmp_path / "out")
        assert (tmp_path / "out" / "report.html").read_text() == page
        assert [file.read_text() for file in linked] == pages
    make.rewrite_report(tmp_path / "out")
    assert (tmp_path / "out" / "report.html").read_text() != page
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 1


def test_a_sampled_sweep_has_its_map(sweep: Command, tmp_path: Path) -> None:
    words = [
        "--vary",
        "path.rate=1mbit..4mbit:log",
        "--vary",
        "path.rtt=5ms..80ms:log",
        "--vary",
        "flow.cc=reno,bbr",
    ]
    sweep(*words, "--sample", "lhs:6", "--repeat", "3", "--out", "out")
    table = pq.read_table(tmp_path / "out" / "dataset")
    assert len(set(table["path_rate_bps"].to_pylist())) == 6
    assert (tmp_path / "out" / "report.html").read_text().count("<circle") == 2 * 3 * 6


def test_the_report_is_written_again_from_the_store(sweep: Command, tmp_path: Path) -> None:
    sweep(*SMALL, "--out", "out")
    page = (tmp_path / "out" / "report.html").read_bytes()
    before = digest(tmp_path / "out")
    (tmp_path / "out" / "report.html").unlink()
    shutil.rmtree(tmp_path / "out" / "dataset")
    words = [word if word != "sweep" else "report" for word in command("out")]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert (tmp_path / "out" / "report.html").read_bytes() == page
    assert digest(tmp_path / "out") == before


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_lets_running_runs_end_and_says_how_to_go_on(
    number: signal.Signals, status: int, experiment: Path, sweep: Command, tmp_path: Path
) -> None:
    words = [*AXES, "--repeat", "200", "--no-report"]
    process = subprocess.Popen(
        command(str(experiment), *words, "--out", "out"),
        cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until = time.monotonic() + 60
    while not list((tmp_path / "out" / "store").glob("*.parquet")) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(number)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == status
    found = re.search(r"To resume: dragstrip (.*)", said)
    assert found
    assert "--out out" in found[1]
    done = int(re.search(r"([\d,]+) made", said)[1].replace(",", ""))  # type: ignore[index]
    assert 0 < done < 2400
    document = json.loads(sweep(*words, "--out", "out", "--json").stdout)
    assert (document["reused"], document["made"]) == (done, 2400 - done)


def test_two_sweeps_do_not_write_to_one_folder(experiment: Path, sweep: Command, tmp_path: Path) -> None:
    import fcntl

    sweep("--vary", "flow.cc=reno", "--out", "out", "--no-report")
    with (tmp_path / "out" / ".lock-1-of-1").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = sweep("--vary", "flow.cc=reno,cubic", "--out", "out", status=1).stderr
    assert "another sweep is writing here" in said


def test_the_documentations_queries_work(
    sweep: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(*SMALL, "--competitor", "cubic", "--out", "map", "--no-report")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "how-to" / "sweeps.md").read_text()
    queries = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    assert len(queries) == 4
    duckdb = pytest.importorskip("duckdb")
    for (
        query
    ) in queries:  # a sweep of bulk transfers has no completion times; tests/test_transfers.py has some
        assert duckdb.sql(query).fetchall() or "fct_s" in query, query
    for source in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        pytest.importorskip(source.split()[1])
        known: dict[str, object] = {}
        exec(source, known)  # noqa: S102 - our own documentation
        assert len(known["table"]) > 0  # type: ignore[arg-type]


def test_the_documentations_harm_is_the_reports_when_queues_vary(
    sweep: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb = pytest.importorskip("duckdb")
    queues = ["--vary", "path.queue=0.5bdp,4bdp,fq_codel"]
    ended = sweep(*SMALL, *queues, "--competitor", "cubic", "--out", "map", "--no-report", "--json")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "how-to" / "sweeps.md").read_text()
    (query,) = (found for found in re.findall(r"```sql\n(.*?)```", text, re.DOTALL) if "harm" in found)
    told = dict(duckdb.sql(query).fetchall())
    described = Sweep.read(read_json(tmp_path / "map" / "sweep.json"), "")
    judged = judge(described, read_dataset(tmp_path / "map")).judged["harm"]
    ours = np.median(judged.values, axis=(0, 2))
    assert told == pytest.approx(dict(zip(["reno", "cubic", "vegas"], ours, strict=True)))
    ranking = json.loads(ended.stdout)["ranking"]
    assert (ranking["paths"], ranking["repeats"]) == (12, 3)
    assert {line["contender"] for line in ranking["harm"]} == {"reno", "cubic", "vegas"}


def test_the_terminal_ranks_the_contenders(sweep: Command) -> None:
    shown = sweep(*SMALL, "--out", "map", "--no-report").stdout
    assert "most goodput     least delay      most power" in shown
    words = "Per algorithm, of 4 paths: won alone / won or tied, and its median figure in % of the best."
    assert words in " ".join(shown.split())
    assert {line.split()[0] for line in shown.splitlines() if " / " in line} >= {"reno", "cubic", "vegas"}


def test_the_terminal_counts_no_paths_won_with_a_single_seed(sweep: Command) -> None:
    shown = sweep(*AXES, "--out", "map", "--no-report").stdout
    words = "Per algorithm, over 4 paths: its median figure in % of the best."
    assert words in " ".join(shown.split())
    assert " / " not in shown
    assert "With 1 seed no algorithm is called better than another: --repeat 3 would tell." in shown


def test_the_description_is_enough(sweep: Command, tmp_path: Path) -> None:
    from dragstrip.studies.sweep.plan import Index, Sweep

    sweep(*SMALL, "--out", "out", "--no-report")
    again = Sweep.read(read_json(tmp_path / "out" / "sweep.json"), "")
    keys = [row["key"] for row in pq.read_table(tmp_path / "out" / "dataset").to_pylist()]
    assert [key.hex() for key in Index(again).all_keys()] == keys


def test_a_refused_sweep_leaves_the_description_alone(sweep: Command, tmp_path: Path) -> None:
    import fcntl

    sweep("--vary", "flow.cc=reno,cubic", "--out", "out", "--no-report")
    known, before = (tmp_path / "out" / "sweep.json").read_bytes(), digest(tmp_path / "out")
    other = ["--vary", "flow.cc=vegas", "--out", "out"]
    for lock in (".lock-1-of-1", ".lock"):  # the same shard is at work, or another one
        with (tmp_path / "out" / lock).open() as held:
            fcntl.flock(held, fcntl.LOCK_SH)
            assert "another sweep is writing here" in sweep(*other, "--replace", status=1).stderr
        assert (tmp_path / "out" / "sweep.json").read_bytes() == known
    said = sweep(*other, status=2).stderr
    assert "holds another sweep" in said
    assert "--replace" in said
    assert said.count("\n") == 1
    assert (tmp_path / "out" / "sweep.json").read_bytes() == known
    subprocess.run(report("out"), cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert digest(tmp_path / "out") == before


def test_a_report_does_not_replace_a_dataset_by_a_smaller_one(sweep: Command, tmp_path: Path) -> None:
    sweep("--vary", "flow.cc=reno,cubic", "--out", "out", "--no-report")
    sweep("--vary", "flow.cc=vegas", "--out", "other", "--no-report")
    before = digest(tmp_path / "out")
    shutil.copy(tmp_path / "other" / "sweep.json", tmp_path / "out")
    ended = subprocess.run(
        report("out"), cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    assert "left as it is" in ended.stderr
    assert digest(tmp_path / "out") == before


def test_a_scenario_that_is_not_its_keys_is_not_run_again(sweep: Command, tmp_path: Path) -> None:
    from dragstrip.studies.sweep.store import SCHEMA, Store

    sweep("--vary", "flow.cc=reno", "--out", "out", "--no-report")
    store = Store(tmp_path / "out" / "store")
    (part,) = store.parts()
    (row,) = pq.read_table(part).to_pylist()
    part.unlink()
    store.waiting = [{**row, "scenario": row["scenario"].replace('"reno"', '"cubic"')}]
    store.flush()
    assert pq.read_schema(store.parts()[0]).equals(SCHEMA)
    words = ["--replay", row["key"], "--from", "out", "--out", "again"]
    ended = subprocess.run(
        command(*words), cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    assert "is not that of the scenario beside it" in ended.stderr
    assert not (tmp_path / "again").exists()


def report(folder: str) -> list[str]:
    return [word if word != "sweep" else "report" for word in command(folder)]
