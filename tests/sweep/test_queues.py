"""The page about queue disciplines, from a sweep of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq
import pytest

from tools.queue_guide import ANSWER_BITS, Figures, RateAndRtt, advice, best, tied

from .conftest import command, environment

ROOT = Path(__file__).parents[2]


def test_the_page_says_what_the_dataset_has(tmp_path: Path) -> None:
    described = (ROOT / "bench" / "queues.toml").read_text()
    described = described.replace('"30s"', '"3s"').split("[vary]", maxsplit=1)[0]
    queues = ["fq_codel", "bfifo limit 4bdp"]
    described += (
        f'[vary]\n"path.rate" = ["2mbit"]\n"path.rtt" = ["40ms"]\n"path.queue" = "{",".join(queues)}"\n'
    )
    (tmp_path / "queues.toml").write_text(described)
    subprocess.run(
        command("queues.toml", "--out", "out"),
        cwd=tmp_path,
        env=environment(),
        check=True,
        capture_output=True,
    )
    words = [sys.executable, "-m", "tools.queue_guide", "out", "page.md"]
    subprocess.run(words, cwd=tmp_path, env={**environment(), "PYTHONPATH": str(ROOT)}, check=True)
    page = (tmp_path / "page.md").read_text()
    rows = pq.read_table(tmp_path / "out" / "dataset" / "sweep.parquet").to_pylist()
    shown = {line.split(" | ")[0][2:]: line.strip("| ").split(" | ") for line in page.splitlines()}
    pings = {}
    for queue in queues:
        mine = [row for row in rows if row["path_queue"] == queue]
        asked = [row["goodput_bps"] / ANSWER_BITS for row in mine if row["label"] == "requests"]
        pings[queue] = median(row["probe_ms_p95"] for row in mine if row["label"] == "requests")
        cells = shown[queue]
        assert float(cells[4]) == pytest.approx(median(asked), abs=0.006)
        assert float(re.sub(r"[^0-9.]", "", cells[3])) == pytest.approx(pings[queue], rel=0.01)
        smaller = [
            min(flows) / sum(flows)
            for seed in (1, 2, 3)
            if (flows := [r["goodput_bps"] for r in mine if r["seed"] == seed and r["label"] != "requests"])
        ]
        assert float(cells[5].split()[0]) == pytest.approx(100 * median(smaller), abs=0.06)
    # The ping crosses a full buffer with one of them, and a queue of its own with the other.
    assert pings["fq_codel"] < pings["bfifo limit 4bdp"] / 2
    assert re.search(r"^\| 2(\.00)? Mbit/s, 40(\.0)? ms \| fq_codel \| ", page, re.MULTILINE), page
    assert page.splitlines()[2].startswith("**Use `fq_codel`**: on 1 of 1 paths "), page


def test_a_queue_that_leaves_the_link_empty_is_not_among_the_best() -> None:
    def figures(goodput_bps: float, ping_ms: float) -> Figures:
        return Figures(goodput_bps, ping_ms, ping_ms, 0, 1, 0.5)

    queues = {"slow": figures(10e6, 90), "short": figures(9.4e6, 1), "good": figures(9.6e6, 20)}
    assert best(queues) == ["good", "slow"]


def pinged(*pings_ms: float) -> Figures:
    """Of a queue that fills the link, with these pings, a seed each."""
    return Figures(1e7, median(pings_ms), median(pings_ms), 0, 1, 0.5, pings_ms)


def test_only_what_differs_beyond_repeats_is_ranked() -> None:
    queues = {
        "a": pinged(20, 21, 22),
        "b": pinged(20.5, 21.5, 21.9),
        "c": pinged(21, 24, 25),
        "d": pinged(30, 31, 32),
    }
    assert tied(queues) == ["a", "b", "c"], "b is alike, and one seed of c is as good as one of a"


def test_advice_names_the_paths_where_another_queue_is_better() -> None:
    found = {
        RateAndRtt(10_000_000, 10_000_000): {"a": pinged(11, 11, 11), "b": pinged(20, 20, 20)},
        RateAndRtt(10_000_000, 40_000_000): {"a": pinged(41, 41, 41), "b": pinged(50, 50, 50)},
        RateAndRtt(1_000_000, 40_000_000): {"a": pinged(90, 91, 92), "b": pinged(55, 56, 57)},
    }
    said = advice(found)
    assert said.startswith("**Use `a`**: on 2 of 3 paths ")
    assert "Unless the path is 1 Mbit/s, 40 ms: there `b` has 56 ms and `a` 91 ms." in said


def test_the_page_in_the_documentation_has_every_cell_of_its_sweep() -> None:
    content = (ROOT / "bench" / "queues.toml").read_text()
    names = re.findall(r'"path.queue" = "(.*)"', content)[0].split(",")
    page = (ROOT / "docs" / "how-to" / "which-queue.md").read_text()
    assert all(page.count(f"\n| {name} |") == 9 for name in names)
