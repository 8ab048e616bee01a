"""The reference pages that Python writes are current, and the published schema is that of the experiments there are."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from dragstrip.experiment import catalogue
from tools import reference

ROOT = Path(__file__).parents[1]
SCHEMA = json.loads((ROOT / "docs/reference/experiment.schema.json").read_text())


def test_the_page_of_commands_is_current() -> None:
    written = (ROOT / "docs/reference/cli.md").read_text()
    assert written == reference.page(), "python -m tools.reference docs/reference/cli.md writes it"


def test_every_command_and_every_option_of_a_race_is_on_the_page() -> None:
    from dragstrip.experiment.race import OPTIONS

    page = reference.page()
    section = page.split("## dragstrip compare\n")[1].split("\n## ")[0]
    missing = [option.word for option in OPTIONS if f"`{option.word}" not in section]
    assert not missing
    assert page.count("\n## dragstrip ") > 15


def test_the_schema_is_one_that_editors_read() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"].startswith("http://json-schema.org/draft-07/")


@pytest.mark.parametrize("name", catalogue.files())
def test_the_catalogue_is_of_the_schema(name: str) -> None:
    content = tomllib.loads(catalogue.files()[name].read_text())
    errors = [error.message[:200] for error in jsonschema.Draft7Validator(SCHEMA).iter_errors(content)]
    assert not errors


@pytest.mark.parametrize(
    "wrong",
    [
        {"duration": "1s", "flows": [], "colour": "red"},
        {"duration": 1, "flows": []},
        {"flows": []},
        {"duration": "1s", "flows": [{"application": {"kind": "bulky"}}]},
        {"duration": "1s", "flows": [], "path": {"rat": "1mbit"}},
        {"duration": "1s", "flows": [], "seed": 2**53},
        {"duration": "1s", "flows": [], "media": {"a": {"kind": "adsl"}}},
    ],
)
def test_the_schema_refuses_what_is_wrong(wrong: dict[str, object]) -> None:
    assert list(jsonschema.Draft7Validator(SCHEMA).iter_errors(wrong))
