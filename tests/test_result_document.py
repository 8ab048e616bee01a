"""Real result documents of all kinds against their schema (docs/reference/result.schema.json)."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dragstrip.engines.sim import simulate
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.types import Experiment
from dragstrip.io.result_shape import RESULT
from dragstrip.io.shape import expect
from dragstrip.model.recording import write
from dragstrip.results.measures import summarise
from dragstrip.runs import Outcome, Task
from dragstrip.studies.execution import runner
from dragstrip.studies.execution.runner import execute, plan

SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "reference" / "result.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
PATH = {"rate": "5mbit", "rtt": "40ms", "queue": "bfifo limit 30kb", "jitter": "1us"}
SECOND = {"path": {"rate": "5mbit", "rtt": "40ms"}, "duration": "2s", "flows": [{"cc": "reno"}]}
CLAIM = {"source": "page 1", "metric": "goodput_bps", "unit": "Mbit/s"}

DETAILED = {
    "name": "detailed",
    "duration": "12s",
    "repeat": 2,
    "record": {"every_ack": True, "cc_state": True},
    "path": PATH,
    "flows": [
        {"cc": "bbr", "label": "download"},
        {"cc": "cubic", "label": "player", "reverse": True, "application": {"kind": "video"}},
        {"cc": "reno", "label": "transfer", "bytes": "100kb"},
        {"label": "live", "application": {"kind": "rtp"}},
    ],
    "changes": [{"at": "6s", "rtt": "60ms"}],
    "vary": {"path.rate": ["5mbit", "8mbit"]},
    "claims": [
        {**CLAIM, "id": "reproduced", "where": {"flow": 0}, "range": [0, 8]},
        {**CLAIM, "id": "contradicted", "where": {"flow": 0}, "value": 900, "tolerance": "1%"},
        {
            "id": "order",
            "source": "page 2",
            "metric": "goodput_bps_total",
            "by": "path.rate",
            "order": ["5mbit", "8mbit"],
        },
        {**CLAIM, "id": "open", "where": {"flow": 0}, "asked": "the rate"},
        {
            **CLAIM,
            "id": "untestable",
            "where": {"flow": 0},
            "value": 1,
            "tolerance": "1%",
            "not_testable": "no radio",
        },
    ],
    "ablations": [{"claims": ["reproduced"], "vary": {"path.rtt": ["10ms"]}, "about": "A shorter path."}],
    "flow_tables": [{"source": "page 3", "where": {"path.rate": "5mbit"}, "published": [1, 2, 3]}],
}


def run_with_stand_in(tasks: list[Task], *_: Any) -> list[Outcome]:
    """Make all runs on the simulator, which stands in for a kernel in real time; the engine refuses `exp`."""
    outcomes = []
    for task in tasks:
        if task.engine != "sim" and task.scenario["flows"][0]["transport"]["cc"] == "exp":
            outcomes.append(Outcome(None, "no congestion control exp"))
            continue
        recording = simulate(task.scenario)
        recording.provenance["engine"] = task.engine
        if task.engine != "sim":
            reductions = sum(recording["flows"]["reductions"].to_pylist())
            verified = {
                "netstat": {"s1": {"TCPSackRecovery": reductions}},
                "idle_rtt_ns": {"s1 to d": 40_000_000},
                "limits": ["the processors were idle for 5 % of the time only"],
            }
            recording.provenance.update(verified=verified, kernel={"release": "6.1", "package": ""})
        write(recording, task.folder)
        outcomes.append(Outcome(summarise(recording)))
    return outcomes


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """One document of each kind, as stored."""
    folder = tmp_path_factory.mktemp("documents")
    race = compare(["cubic", "vegas"], together=True, repeat=2, **{**PATH, "duration": "4s"})
    execute(plan(race), folder / "race", report=False, counterfactuals=True)
    execute(plan(Experiment.build(DETAILED, "x.toml")), folder / "detailed", report=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "run_all", run_with_stand_in)
        patch.setattr(runner, "prepare", lambda *_: None)
        both = compare(["reno", "exp"], engine="sim,vm", **{**PATH, "duration": "4s"})
        execute(plan(both), folder / "engines", report=False)
        limited = {**SECOND, "name": "limited", "engine": "netns"}
        limited["claims"] = [{**CLAIM, "id": "limited", "range": [0, 5]}]
        execute(plan(Experiment.build(limited, "x.toml")), folder / "limited", report=False)
    return {file.parent.name: json.loads(file.read_text()) for file in folder.glob("*/result.json")}


def test_the_schema_permits_no_other_fields() -> None:
    VALIDATOR.check_schema(SCHEMA)
    for name, definition in [("Result", SCHEMA), *SCHEMA["$defs"].items()]:
        if "properties" in definition:
            assert definition["additionalProperties"] is False, name
            for field, property_ in definition["properties"].items():
                assert property_.get("description"), f"{name}.{field}"


@pytest.mark.parametrize("kind", ["race", "detailed", "engines", "limited"])
def test_a_document_is_valid(documents: dict[str, dict[str, Any]], kind: str) -> None:
    VALIDATOR.validate(documents[kind])
    expect(documents[kind], RESULT, "result.json")


def test_every_property_occurs(documents: dict[str, dict[str, Any]]) -> None:
    occurring = {place for document in documents.values() for place in properties(document, SCHEMA, "Result")}
    defined = {
        (name, field)
        for name, definition in [("Result", SCHEMA), *SCHEMA["$defs"].items()]
        for field in definition.get("properties", ())
    }
    assert defined - occurring == set()
    grades = {claim["grade"] for document in documents.values() for claim in document["claims"]}
    assert grades == {choice["const"] for choice in SCHEMA["$defs"]["Grade"]["oneOf"]}


def properties(value: Any, schema: dict[str, Any], name: str) -> Iterator[tuple[str, str]]:
    """Yield the type and the name of each property of a value."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        schema = SCHEMA["$defs"][name]
    for choice in schema.get("anyOf", ()):
        if jsonschema.Draft202012Validator({**choice, "$defs": SCHEMA["$defs"]}).is_valid(value):
            yield from properties(value, choice, name)
    if isinstance(value, list):
        for entry in value:
            yield from properties(entry, schema.get("items", {}), name)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in schema.get("properties", ()):
                yield name, key
                yield from properties(inner, schema["properties"][key], name)
            elif isinstance(schema.get("additionalProperties"), dict):
                yield from properties(inner, schema["additionalProperties"], name)


@pytest.mark.parametrize(
    ("field", "value"),
    [("seed", -1), ("duration_s", None), ("flows", {}), ("jain", "1"), ("why", [{"rule": 5}])],
)
def test_a_wrong_value_is_refused(documents: dict[str, dict[str, Any]], field: str, value: Any) -> None:
    document = copy.deepcopy(documents["race"])
    document["runs"][0][field] = value
    assert not VALIDATOR.is_valid(document)
    with pytest.raises(BadInputError, match=field):
        expect(document, RESULT, "result.json")


def test_an_unknown_field_is_refused(documents: dict[str, dict[str, Any]]) -> None:
    document = copy.deepcopy(documents["race"])
    document["runs"][0]["flows"][0]["goodput"] = 1.0
    with pytest.raises(jsonschema.ValidationError, match="'goodput' was unexpected"):
        VALIDATOR.validate(document)
