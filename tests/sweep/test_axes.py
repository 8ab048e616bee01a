from __future__ import annotations

import pytest

from dragstrip.errors import BadInputError
from dragstrip.studies.sweep.axes import Range, SweepAxis, parse, quantity, sampled


def labels(text: str) -> list[object]:
    axis = parse(text)
    assert isinstance(axis, SweepAxis)
    return [level.label for level in axis.levels]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("path.rtt=5ms,20ms,80ms", ["5ms", "20ms", "80ms"]),
        ("path.rate=1mbit..1gbit:log:4", ["1mbit", "10mbit", "100mbit", "1gbit"]),
        ("path.rate=1mbit..3mbit:lin:3", ["1mbit", "2mbit", "3mbit"]),
        ("path.rate=1mbit..3mbit:3", ["1mbit", "2mbit", "3mbit"]),
        ("path.rtt=1ms..1s:log:4", ["1ms", "10ms", "100ms", "1s"]),
        ("path.loss=0.01%..1%:log:3", ["0.01%", "0.1%", "1%"]),
        ("flows.bytes=1000b..4000b:lin:4", ["1000b", "2000b", "3000b", "4000b"]),
        ("flow.count=1..9:lin:3", [1, 5, 9]),
        ("path.atm=true,false", [True, False]),
        ("flow.cc=reno,cubic", ["reno", "cubic"]),
        ("up_rate=1mbit,2mbit", ["1mbit", "2mbit"]),
    ],
)
def test_an_axis_from_its_text(text: str, expected: list[object]) -> None:
    assert labels(text) == expected


def test_an_option_of_a_race_is_its_field() -> None:
    assert [parse(text).path for text in ("up_rate=1mbit", "queue=sfq", "flow.cc=bbr", "seed=1")] == [
        "path.up_rate",
        "path.queue",
        "flows.cc",
        "seed",
    ]


def test_levels_between_have_four_digits() -> None:
    assert labels("path.rate=1mbit..1gbit:log:12")[1] == "1.874mbit"


@pytest.mark.parametrize(
    "text",
    [
        "path.rate",
        "path.rate=",
        "path.rate=1mbit,,2mbit",
        "path.rate=1mbit,1mbit",
        "path.rate=1mbit..1s:log:3",
        "path.rate=2mbit..1mbit:log:3",
        "path.loss=0%..1%:log:3",
        "path.rate=1mbit..2mbit:cubic:3",
        "path.rate=1mbit..2mbit:log:0",
    ],
)
def test_what_cannot_be_an_axis_is_named(text: str) -> None:
    with pytest.raises(BadInputError) as caught:
        parse(text)
    assert str(caught.value)


def test_quantities_have_the_columns_unit() -> None:
    found = [quantity(label) for label in ("10mbit", "20ms", "3kb", "1%", 7)]
    assert found == [("_bps", 1e7), ("_ns", 2e7), ("_bytes", 3072), ("_share", 0.01), ("", 7)]
    assert quantity("bfifo limit 1bdp") is None


def test_a_latin_hypercube_has_a_point_in_every_stratum() -> None:
    axes = [parse("path.rate=1mbit..1gbit:log"), parse("flow.count=0..100"), parse("flow.cc=reno,bbr")]
    points, contenders = sampled(axes, "lhs:20", seed=3)
    assert contenders.path == "flows.cc"
    counts = sorted(float(level.assignments["flows.count"]) for level in points.levels)
    assert [int(count // 5) for count in counts] == list(range(20))
    rates = [level.assignments["path.rate"] for level in points.levels]
    assert len(set(rates)) == 20
    assert sampled(axes, "lhs:20", seed=3)[0] == points
    assert sampled(axes, "lhs:20", seed=4)[0] != points


def test_random_points_stay_inside() -> None:
    (points,) = sampled([parse("path.rtt=5ms..10ms")], "random:50", seed=1)
    times = [quantity(level.assignments["path.rtt"]) for level in points.levels]
    assert all(found is not None and 5e6 <= found[1] <= 10e6 for found in times)


def test_a_range_wants_a_sample_and_a_sample_a_range() -> None:
    assert isinstance(parse("path.rtt=5ms..10ms"), Range)
    with pytest.raises(BadInputError, match="--sample"):
        sampled([parse("path.rtt=5ms..10ms")], None, 1)
    with pytest.raises(BadInputError, match="--sample"):
        sampled([parse("path.rtt=5ms,10ms")], "lhs:3", 1)
    with pytest.raises(BadInputError, match="lhs:N"):
        sampled([parse("path.rtt=5ms..10ms")], "sobol:3", 1)
