"""The registry of congestion controls, as the extension tells it."""

from pathlib import Path

from dragstrip import _core

ROWS = {row["name"]: row for row in _core.algorithm_table()}


def test_every_algorithm_has_a_row() -> None:
    assert list(ROWS) == list(_core.ALGORITHMS)


def test_a_row_says_what_can_be_set_and_what_is_shown() -> None:
    beta = next(it for it in ROWS["cubic"]["parameters"] if it["name"] == "beta")
    assert (beta["default"], beta["range"]) == (717, "a whole number from 512 to 1023")
    units = {it["name"]: it["unit"] for it in ROWS["bbr"]["variables"]}
    assert (units["bandwidth"], units["min_rtt"], units["pacing_gain"]) == ("bps", "ns", "ratio")
    assert ROWS["bbr"]["needs"] == {"pacing": True, "rtt_stamps": False, "ecn": "classic", "dice": True}


def test_a_row_names_its_source() -> None:
    root = Path(__file__).parents[1]
    assert all((root / row["file"]).is_file() for row in ROWS.values())
