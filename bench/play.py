"""The playground in figures: what is loaded, and how long a slider's step waits for its first picture.

    python bench/play.py [--steps 40] [--slow 6]

Needs the page (`make play`) and Chromium. A step moves the slider of the rate around the first race (CUBIC
beside Vegas, 10 Mbit/s, 40 ms, 30 s) and ends when the task that painted the chart of its picture has ended.
`--slow` throttles Chromium's processor, as its developer tools do.
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from viewer.browser import Browser, program  # noqa: E402 - the path comes first

PAGE = ROOT / "python/dragstrip/playground/page.html"
CORE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "play/core.wasm"
SETTLED = "document.querySelector('#hash').textContent.length === 64"
STEP = """(async (place) => {
    const slider = document.querySelector("input[type=range]");
    const pixels = CanvasRenderingContext2D.prototype, fill = pixels.fillRect;
    const began = performance.now();
    const ended = new Promise((done) => {
        pixels.fillRect = function (...all) {
            if (!this.canvas.closest(".charts")) return fill.apply(this, all);
            pixels.fillRect = fill;
            const channel = new MessageChannel();
            channel.port1.onmessage = () => done(performance.now() - began);
            channel.port2.postMessage(0);
            return fill.apply(this, all);
        };
    });
    slider.value = place;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    return await ended;
})"""


def main() -> None:
    """Prints them."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    words.add_argument("--steps", type=int, default=40)
    words.add_argument("--slow", type=float, default=1)
    said = words.parse_args()
    if CORE.exists():
        wasm = CORE.read_bytes()
        print(f"core: {len(wasm) / 1e3:.0f} kB, {len(gzip.compress(wasm, 9)) / 1e3:.0f} kB gzip")
    print(f"page: {PAGE.stat().st_size / 1e3:.0f} kB")
    chromium = program()
    if chromium is None:
        raise SystemExit("no Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(chromium, Path(folder))
        page = browser.page(PAGE)
        page.wait_for(lambda: page.value(SETTLED))
        page.ask("Emulation.setCPUThrottlingRate", rate=said.slow)
        times = []
        for step in range(said.steps + 5):
            times.append(page.value(f"{STEP}({480 + step * 7 % 41})"))
            page.value("new Promise((done) => setTimeout(done, 250))")
        browser.close()
    counted = sorted(times[5:])
    most = counted[len(counted) * 9 // 10]
    print(f"slider's step to first picture: median {statistics.median(counted):.0f} ms, ", end="")
    print(f"nine in ten below {most:.0f} ms ({said.steps} steps, {said.slow:g} times throttled)")


if __name__ == "__main__":
    main()
