"""TOML that we write is read back the same; errors name the line of the file."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dragstrip.errors import BadInputError
from dragstrip.experiment import catalogue
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.types import Experiment
from dragstrip.io.toml import line_of, pointed, toml_text
from dragstrip.studies.execution.runner import plan

FILE = """\
# a comment with [brackets]
title = "lines"
duration = "1s"
[path]
rate = "1mbit"
rtt = "10ms"
queue = "1bdp"

[[flows]]
cc = "reno"

[[flows]]
cc = "cubic"
application = { kind = "bulk" }
start = "0s"

[vary]
"flows.cc" = [
  "reno",
  "bbr",
]
'hosts."*".sysctl."net.ipv4.tcp_sack"' = [0, 1]
"""


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("duration", 3),
        ("path.rtt", 6),
        ("path.nothing", 4),
        ("flows[0].cc", 10),
        ("flows[1].cc", 13),
        ("flows[1].application.kind", 14),
        ("flows[1].start", 15),
        ("flows[1]", 12),
        ("vary.flows.cc", 18),
        ('vary.hosts."*".sysctl."net.ipv4.tcp_sack"', 22),
        ("hosts", None),
        ("", None),
    ],
)
def test_a_field_has_the_line_it_is_written_in(field: str, line: int | None) -> None:
    assert line_of(FILE, field) == line
    assert line_of("\ufeff" + FILE.replace("\n", "\r\n"), field) == line


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('rtt = "10ms"', 'rtt = "10"', 'mine.toml:6: path.rtt: got "10"'),
        ('queue = "1bdp"', 'queue = "1bdq"', "mine.toml:7: path.queue"),
        ('cc = "cubic"', 'cc = "cubik"', 'mine.toml:13: flows[1].cc: got "cubik"'),
        ('start = "0s"', 'strt = "0s"', "mine.toml:15: flows[1].strt"),
        ('queue = "1bdp"', 'queue = "bfifo limit 100b"', 'mine.toml:7: path.queue: got "100b"'),
        ('rate = "1mbit"', 'rate = "1mbit', "mine.toml:5: is not TOML"),
        ('"flows.cc" = [', '"flows.7.cc" = [', "mine.toml:18: vary.flows.7.cc"),
    ],
)
def test_an_error_names_file_and_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    file = tmp_path / "mine.toml"
    assert FILE.count(old) == 1
    file.write_text(FILE.replace(old, new))
    with pytest.raises(BadInputError) as refused:
        plan(Experiment.read(file), str(file))
    assert f"{tmp_path}/{told}" in str(pointed(refused.value))


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FILE, encoding="utf-8-sig")
    assert Experiment.read(file).title == "lines"


@pytest.mark.parametrize("name", list(catalogue.files()))
def test_what_we_write_is_read_back_the_same(name: str) -> None:
    content = catalogue.load(name)[0].content()
    assert tomllib.loads(toml_text(content)) == content


def test_a_comparison_is_an_experiment_file(tmp_path: Path) -> None:
    described = compare(["cubic:beta=0.8", "bbr*2@20ms"], path="home DSL", workload="web", duration="5s")
    file = tmp_path / "mine.toml"
    file.write_text(toml_text(described.content()))
    again = Experiment.read(file)
    assert again.content() == described.content()
    scenarios = [[run.scenario for run in plan(each).runs] for each in (described, again)]
    assert scenarios[0] == scenarios[1]


LONG = {
    "a word": "'# ' + 'a' * 2_000_000",
    "a key": "'a.' * 1_000_000",
    "dots and blanks": "'a' + ' .' * 1_000_000",
    "escaped quotes": "'x = \"' + '\\\\\"' * 1_000_000",
    "a list of lines": "'x = [\\n' + '[1,2],\\n' * 50_000 + ']\\n'",
    "quotes in a long string": "\"x = '''\\n\" + \"'\\n\" * 200_000 + \"'''\\n\"",
}


@pytest.mark.parametrize("name", LONG)
def test_what_is_long_is_read_in_one_pass(name: str) -> None:
    """Each would take hours if its time grew with the square of its length; the patience is for a busy machine."""
    program = (
        "from dragstrip.io import toml, untrusted\n"
        f"said = {LONG[name]}\n"
        "untrusted.nested_key(said), list(toml._places(said))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_places_in_values_of_several_lines() -> None:
    content = "\n".join(
        ('a = """x', "[no]", 'y = "1" """ # "', "b = {c = [1,", ' 2], d = "]"}', '[t."x"]', "k = 'a\"b'")
    )
    assert [line_of(content, field) for field in ("a", "b.c[1]", "b.d", "t.x.k")] == [1, 4, 4, 7]


def test_a_table_that_stands_twice_is_a_list(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text('title = "x"\n[flows]\ncc = "cubic"\n[flows]\ncc = "reno"\n')
    with pytest.raises(BadInputError) as caught:
        catalogue.load(file)
    error = str(pointed(caught.value))
    assert "two.toml:4: is not TOML: [flows] stands twice" in error
    assert "[[flows]]" in error
