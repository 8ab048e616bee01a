"""Checks a worker's answer on arrival: its structure, its limits, and that it belongs to the order.

The key, seed, engine, version and scenario of a run are known to the parent and never taken from an answer;
labels and algorithms of flows must be those of the scenario.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from dragstrip.errors import BadInputError
from dragstrip.io.result_shape import SUMMARY
from dragstrip.io.shape import NUMBER, TEXT, Plain, Shape, expect, optional
from dragstrip.io.untrusted import one_line, parsed_json, printable
from dragstrip.runs.work import (
    FAILED,
    FAULT,
    MEMORY_LIMIT,
    OK,
    OUTPUT_CHARACTERS,
    REBUILT,
    TIME_LIMIT,
    UNWRITTEN,
    Answer,
    Order,
)

ANSWER_MAX = 256 << 20
"""Bytes of an answer, at most; that of a run with a hundred thousand flows has 40 MB."""

_STATUS = Plain("ok, failed, memory limit or time limit", (OK, FAILED, MEMORY_LIMIT, TIME_LIMIT).__contains__)
_SHA256 = Plain(
    "64 hexadecimal digits",
    lambda value: isinstance(value, str) and bool(re.fullmatch("[0-9a-f]{64}", value)),
)
_SECONDS = Plain("seconds, not negative", lambda value: NUMBER.holds(value) and value >= 0)
_SPENT: Mapping[str, Shape] = {"cpu_s": optional(_SECONDS), "wall_s": optional(_SECONDS)}
_ENDED_WELL: Mapping[str, Shape] = {**_SPENT, "summary": SUMMARY, "sha256": _SHA256}
_FAILED: Mapping[str, Shape] = {**_SPENT, "reason": Plain("text", lambda value: isinstance(value, str))}

HOST_MAX = 64
NOTES_MAX, NOTE_CHARACTERS = 10, 500


def parsed(line: bytes | str) -> Any:
    """Parse an answer in transit; raises `BadInputError` if it is not JSON."""
    return parsed_json(line, "a worker's answer", "JSON")


def refused(reason: str) -> Answer:
    """Return the failure that replaces an answer that cannot be accepted."""
    return {"status": FAILED, "reason": f"its worker's answer is invalid: {one_line(reason)}"}


def checked(order: Order, answer: object) -> Answer:
    """Return the known fields of an answer to this order, or a failure if its structure is wrong."""
    try:
        return _checked(order, answer)
    except BadInputError as error:
        return refused(str(error))


def _checked(order: Order, answer: object) -> Answer:
    expect(answer, {"status": _STATUS}, "")
    assert isinstance(answer, dict)
    if answer["status"] == OK:
        expect(answer, _ENDED_WELL, "")
        _expect_flows(order, answer["summary"]["flows"])
        checked = {name: answer[name] for name in ("status", *_ENDED_WELL) if name in answer}
        if order.claims:
            expect(answer, {"claims": [[[NUMBER]]]}, "")
            _expect_claims(order, answer["claims"])
            checked["claims"] = answer["claims"]
        notes = answer.get("notes")
        if isinstance(notes, list) and all(isinstance(note, str) for note in notes):
            checked["notes"] = [one_line(note)[:NOTE_CHARACTERS] for note in notes[:NOTES_MAX]]
        return checked
    expect(answer, _FAILED, "")
    checked = {name: answer[name] for name in ("status", *_SPENT) if name in answer}
    checked["reason"] = one_line(answer["reason"]) or "without a reason"
    if isinstance(output := answer.get("output"), str):
        checked["output"] = printable(output[-OUTPUT_CHARACTERS:])
    wrong = answer.get("wrong")
    if isinstance(wrong, list) and len(wrong) == 4 and all(map(TEXT.holds, wrong)):
        checked["wrong"] = wrong
    if (kind := answer.get("kind")) in (FAULT, UNWRITTEN, REBUILT):
        checked["kind"] = kind
    return checked


def _expect_claims(order: Order, values: list[list[list[float]]]) -> None:
    """Raise `BadInputError` unless there are values for each selector of each claim of the order."""
    counts = [len(claim["selectors"]) for claim in order.claims]
    if [len(claim) for claim in values] != counts:
        expected = f"lists of {counts} entries, as the order has"
        raise BadInputError("claims", [len(claim) for claim in values], expected)


def _expect_flows(order: Order, flows: list[dict[str, Any]]) -> None:
    """Raise `BadInputError` unless the flows are the scenario's, in the same order."""
    scenario = json.loads(order.text) if order.scenario is None else order.scenario
    ordered = scenario.get("flows", [])
    if len(flows) != len(ordered):
        raise BadInputError("summary.flows", len(flows), f"{len(ordered)} flows, as the scenario has")
    for number, (flow, flow_order) in enumerate(zip(flows, ordered, strict=True)):
        transport = flow_order["transport"]
        expected_fields = {"flow": number, "label": flow_order["label"], "cc": transport.get("cc") or "udp"}
        for name, value in expected_fields.items():
            if flow[name] != value:
                expected = f"{value!r}, as in the scenario"
                raise BadInputError(f"summary.flows[{number}].{name}", flow[name], expected)


def host_of(answer: object) -> str:
    """Return the name of the machine that an answer came from, or an empty string."""
    host = answer.get("host") if isinstance(answer, dict) else None
    return one_line(host)[:HOST_MAX] if isinstance(host, str) else ""
