"""A passport as JUnit XML, one test a row, for a build that shows tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from dragstrip.io.untrusted import printable
from dragstrip.studies.passport.wording import measured, unit


def xml(document: Mapping[str, Any], failed: Mapping[str, str]) -> str:
    """Return the rows as tests; `failed` has the ids of those that fail the build, with the reason.

    A row that was reported or missed a target without failing the build is a test that passed.
    """
    suites = [_suite(document, chapter["name"], failed) for chapter in document["chapters"]]
    head = f"<testsuites name={_attribute('passport of ' + document['algorithm'])}"
    counts = f'tests="{len(document["rows"])}" failures="{len(failed)}"'
    body = "".join(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head} {counts}>\n{body}</testsuites>\n'


def _suite(document: Mapping[str, Any], chapter: str, failed: Mapping[str, str]) -> str:
    rows = [row for row in document["rows"] if row["chapter"] == chapter]
    failures = sum(row["id"] in failed for row in rows)
    cases = "".join(_case(row, chapter, failed.get(row["id"])) for row in rows)
    head = f'  <testsuite name={_attribute(chapter)} tests="{len(rows)}" failures="{failures}">'
    return f"{head}\n{cases}  </testsuite>\n"


def _case(row: Mapping[str, Any], chapter: str, reason: str | None) -> str:
    baselines = ", ".join(f"{name} {measured(of['value'])}" for name, of in row["baselines"].items())
    out = f"{row['title']}: {row['measure']} {unit(row)} ({baselines}): {row['verdict']}\n{row['replay']}"
    failure = "" if reason is None else f"<failure message={_attribute(reason)}/>"
    case = f"    <testcase classname={_attribute('passport.' + chapter)} name={_attribute(row['id'])}>"
    return f"{case}{failure}<system-out>{escape(_valid(out))}</system-out></testcase>\n"


def _attribute(text: str) -> str:
    return quoteattr(_valid(text))


def _valid(text: str) -> str:
    """Text without what XML 1.0 has no place for."""
    return "".join(
        character
        for character in printable(text)
        if character in "\t\n" or " " <= character <= "\ud7ff" or "\ue000" <= character <= "\ufffd"
    )
