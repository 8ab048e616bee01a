"""`inspect --infer`, `identify` and `whatif` on captures from elsewhere, and on captures that lack something."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragstrip.analysis.whatif.identify import GIVEN, IMPOSSIBLE
from dragstrip.cli import app
from dragstrip.engines.capture import CaptureRequest
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.studies.execution.runner import captured, execute, plan

PATH = {"rate": "5mbit", "rtt": "60ms", "queue": "bfifo limit 60kb", "duration": "15s"}
REAL = Path(__file__).parents[2] / "shared" / "captures" / "policing"
SENDER, OTHER, RECEIVER = (bytes([10, 0, 0, number]) for number in (1, 2, 3))
BLOCK, IP = 6, 28 + 14
"""An enhanced packet block of pcapng, and where the IP header is in it, behind Ethernet's."""


def made(folder: Path, algorithms: tuple[str, ...] = ("cubic",), **options: Any) -> Path:
    """Return the folder of a race with captures at the sender and at the receiver."""
    points = ("s1", "s2", "d") if options.get("flows") == 2 else ("s1", "d")
    planned = captured(plan(compare(algorithms, **{**PATH, **options})), CaptureRequest(points=points))
    execute(planned, folder, report=False)
    return folder


def at(folder: Path, place: str = "s1") -> Path:
    (file,) = sorted(folder.glob(f"runs/000-*/captures/{place}.pcapng"))
    return file


@pytest.fixture(scope="module")
def cubic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return at(made(tmp_path_factory.mktemp("verdicts") / "cubic"))


def said(*words: str | Path) -> dict[str, Any]:
    ended = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert ended.exit_code == 0, ended.output
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def path_of(file: Path) -> dict[str, Any]:
    """Return the path of a capture's flow with the most bytes."""
    document = said("inspect", file, "--infer")
    largest = max(document["flows"], key=lambda flow: flow["bytes"])
    (path,) = (path for path in document["paths"] if path["flow"] == largest["label"])
    found: dict[str, Any] = path
    return found


def refusal(*words: str | Path) -> str:
    ended = CliRunner().invoke(app, [*map(str, words)])
    assert isinstance(ended.exception, BadInputError), ended.output
    return str(ended.exception)


# --- packets of a pcapng file that the simulator wrote ----------------------------------------------


def blocks(content: bytes) -> Iterator[bytearray]:
    place = 0
    while place < len(content):
        (length,) = struct.unpack_from("<I", content, place + 4)
        yield bytearray(content[place : place + length])
        place += length


def changed(file: Path, out: Path, change: Callable[[int, bytearray], bytes | None]) -> Path:
    """Write a capture whose packets `change` makes of a number and a block; None leaves one out."""
    parts: list[bytes] = []
    number = 0
    for block in blocks(file.read_bytes()):
        if struct.unpack_from("<I", block)[0] != BLOCK:
            parts.append(bytes(block))
            continue
        new = change(number, block)
        number += 1
        if new is not None:
            parts.append(new)
    out.write_bytes(b"".join(parts))
    return out


def stamp(block: bytearray) -> int:
    high, low = struct.unpack_from("<II", block, 12)
    return int(high) << 32 | int(low)


def stamped(block: bytearray, at_ns: int) -> bytes:
    struct.pack_into("<II", block, 12, at_ns >> 32, at_ns & 0xFFFFFFFF)
    return bytes(block)


def together(files: list[Path], out: Path, hosts: dict[bytes, bytes]) -> Path:
    """Write one capture of the packets of several; in all but the first, hosts have other addresses."""
    parts: list[bytes] = []
    packets: list[bytearray] = []
    for file in files:
        for block in blocks(file.read_bytes()):
            if struct.unpack_from("<I", block)[0] == BLOCK:
                if file != files[0]:
                    for place in (IP + 12, IP + 16):
                        address = bytes(block[place : place + 4])
                        block[place : place + 4] = hosts.get(address, address)
                packets.append(block)
            elif file == files[0]:
                parts.append(bytes(block))
    parts += map(bytes, sorted(packets, key=stamp))
    out.write_bytes(b"".join(parts))
    return out


def cut_to(block: bytearray, kept: int) -> bytes:
    """Return a packet of which so many bytes are captured; options of the block are left out."""
    data = bytes(block[28 : 28 + min(kept, struct.unpack_from("<I", block, 20)[0])])
    length = 32 + -(-len(data) // 4) * 4
    head = bytearray(block[:28])
    struct.pack_into("<I", head, 4, length)
    struct.pack_into("<I", head, 20, len(data))
    return bytes(head) + data.ljust(length - 32, b"\0") + struct.pack("<I", length)


# --- captures that lack something -------------------------------------------------------------------


def test_ten_packets(cubic: Path, tmp_path: Path) -> None:
    ten = changed(cubic, tmp_path / "ten.pcapng", lambda number, block: bytes(block) if number < 10 else None)
    path = path_of(ten)
    assert path["queue"] == "cannot tell"
    assert "too few" in path["rate_bps"]["reason"]
    assert "shows the path's" in refusal("whatif", ten, "bbr", "--sender-algorithm", "cubic")
    assert said("identify", ten)["kind"] == IMPOSSIBLE


@pytest.mark.parametrize("forth", [True, False])
def test_one_direction_only(cubic: Path, tmp_path: Path, forth: bool) -> None:
    def kept(_: int, block: bytearray) -> bytes | None:
        return bytes(block) if (block[IP + 12 : IP + 16] == SENDER) == forth else None

    one = changed(cubic, tmp_path / "one.pcapng", kept)
    if forth:
        assert "the acknowledgements are not in the capture" in path_of(one)["rate_bps"]["reason"]
        assert said("identify", one)["kind"] == IMPOSSIBLE
        assert "acknowledgements are not" in refusal("whatif", one, "bbr", "--sender-algorithm", "cubic")
    else:
        assert said("inspect", one, "--infer")["paths"] == []
        assert "carries data" in refusal("identify", one)


def test_packets_cut_behind_their_headers(cubic: Path, tmp_path: Path) -> None:
    cut = changed(cubic, tmp_path / "cut.pcapng", lambda _, block: cut_to(block, 14 + 20 + 60))
    whole, short = path_of(cubic), path_of(cut)
    for field in ("rate_bps", "base_rtt_ms", "buffer_bytes"):
        assert short[field]["value"] == pytest.approx(whole[field]["value"], rel=0.05), field
    assert said("identify", cut)["answer"] == "cubic"


def test_a_handshake_whose_options_are_cut_leaves_the_windows_scale_open(cubic: Path, tmp_path: Path) -> None:
    """60 bytes of a frame hold six of TCP's options: the scale is not among them."""
    cut = changed(cubic, tmp_path / "cut.pcapng", lambda _, block: cut_to(block, 60))
    document = said("inspect", cut, "--infer")
    (path,) = document["paths"]
    assert path["receiver_window_bytes"]["value"] is None
    assert "scale" in path["receiver_window_bytes"]["reason"]
    assert document["flows"][0]["limited_s"]["receiver"] == 0
    verdict = said("whatif", cut, "bbr", "--sender-algorithm", "cubic")
    assert verdict["explains"]["grade"] == "explained"


def test_packets_cut_within_their_headers_are_refused(cubic: Path, tmp_path: Path) -> None:
    cut = changed(cubic, tmp_path / "cut.pcapng", lambda _, block: cut_to(block, 14 + 20 + 4))
    assert said("inspect", cut, "--infer")["paths"] == []
    assert "carries data" in refusal("identify", cut)


def test_packets_cut_within_their_options_have_an_answer_or_a_reason(cubic: Path, tmp_path: Path) -> None:
    """Of SACK blocks nothing is left: losses are seen later."""
    cut = changed(cubic, tmp_path / "cut.pcapng", lambda _, block: cut_to(block, 14 + 20 + 32))
    whole, short = path_of(cubic), path_of(cut)
    assert short["base_rtt_ms"]["value"] == pytest.approx(whole["base_rtt_ms"]["value"], rel=0.02)
    document = said("identify", cut)
    assert document["answer"] in (None, "cubic")
    assert document["reason"]


def stepped(cubic: Path, tmp_path: Path, step_s: float) -> Path:
    """Return a capture whose host's clock is set in the middle."""
    count = sum(struct.unpack_from("<I", block)[0] == BLOCK for block in blocks(cubic.read_bytes()))

    def set_clock(number: int, block: bytearray) -> bytes:
        return stamped(block, stamp(block) + (round(step_s * 1e9) if number > count // 2 else 0))

    return changed(cubic, tmp_path / "step.pcapng", set_clock)


def test_a_clock_that_was_set_back_is_one_refusal(cubic: Path, tmp_path: Path) -> None:
    file = stepped(cubic, tmp_path, -3.0)
    path = path_of(file)
    for field in ("base_rtt_ms", "rate_bps", "buffer_bytes"):
        assert path[field]["value"] is None
        assert "the clock of the capture was set back" in path[field]["reason"]
    assert "was set back" in refusal("whatif", file, "bbr", "--sender-algorithm", "cubic")
    assert "was set back" in said("identify", file)["reason"]


def test_a_clock_that_was_set_forward_contradicts_the_path(cubic: Path, tmp_path: Path) -> None:
    file = stepped(cubic, tmp_path, 3.0)
    path, whole = path_of(file), path_of(cubic)
    for field, most in (("base_rtt_ms", 0.02), ("rate_bps", 0.03)):
        assert path[field]["value"] == pytest.approx(whole[field]["value"], rel=most), field
    document = said("whatif", file, "bbr", "--sender-algorithm", "cubic")
    assert not document["raced"]
    assert any("clock was set" in reason for reason in document["explains"]["contradictions"])
    whole = said("whatif", cubic, "bbr", "--sender-algorithm", "cubic")
    assert not any("clock" in reason for reason in whole["explains"]["contradictions"])


# --- several flows ----------------------------------------------------------------------------------


def test_flows_that_share_the_bottleneck(tmp_path: Path) -> None:
    folder = made(tmp_path / "two", flows=2)
    file = together([at(folder, "s1"), at(folder, "s2")], tmp_path / "both.pcapng", {OTHER: SENDER})
    path = path_of(file)
    assert any("other flow" in note for note in path["notes"])
    assert path["buffer_bytes"]["value"] is None
    document = said("identify", file, "--flow", "30001")
    assert document["answer"] in (None, "cubic")
    verdict = CliRunner().invoke(
        app, ["whatif", str(file), "bbr", "--sender-algorithm", "cubic", "--flow", "30001", "--json"]
    )
    if verdict.exit_code == 0:
        contradictions = json.loads(verdict.stdout)["explains"]["contradictions"]
        assert any("other flow" in reason for reason in contradictions)
    else:
        assert "other flows" in str(verdict.exception)


def test_an_upload_beside_the_download(cubic: Path, tmp_path: Path) -> None:
    """The host that sends receives from a third: of that only the base RTT and the rate are known."""
    upload = at(made(tmp_path / "upload", ("reno",), rate="2mbit"), "d")
    hosts = {SENDER: OTHER, RECEIVER: SENDER}
    file = together([cubic, upload], tmp_path / "both.pcapng", hosts)
    down, up = sorted(said("inspect", file, "--infer")["paths"], key=lambda path: str(path["flow"]))
    assert (down["place"], up["place"]) == ("sender", "receiver")
    alone = path_of(cubic)
    for field in ("base_rtt_ms", "rate_bps", "buffer_bytes"):
        assert down[field] == alone[field], field
    assert up["rate_bps"]["value"] == pytest.approx(2e6 * 1500 / 1514, rel=0.03)
    assert "at the receiver" in up["buffer_bytes"]["reason"]
    assert said("identify", file)["answer"] == "cubic"
    assert "one at the receiver" in refusal(
        "whatif", file, "bbr", "--sender-algorithm", "reno", "--flow", "10.0.0.2"
    )


# --- the same without addresses ---------------------------------------------------------------------


def test_an_anonymous_copy_explains_itself_as_the_capture_does(cubic: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcap"
    secret = bytes([192, 0, 2, 9])

    def addressed(_: int, block: bytearray) -> bytes:
        for place in (IP + 12, IP + 16):
            if block[place : place + 4] == SENDER:
                block[place : place + 4] = secret
        return bytes(block)

    cubic = changed(cubic, tmp_path / cubic.name, addressed)
    assert secret in cubic.read_bytes()
    assert said("inspect", cubic, "--anonymise", copy)["kept"] > 1000
    assert secret not in copy.read_bytes()
    assert "192.0.2.9" not in json.dumps(said("inspect", copy, "--infer"))
    assert copy.stat().st_size < cubic.stat().st_size
    theirs, ours = path_of(cubic), path_of(copy)
    for field in ("file", "flow"):
        theirs.pop(field)
        ours.pop(field)
    assert ours == theirs
    one, other = said("identify", cubic), said("identify", copy)
    assert (one.pop("file"), other.pop("file")) == (cubic.name, copy.name)
    assert one == other
    assert one["kind"] == GIVEN


@pytest.mark.skipif(not REAL.is_dir(), reason="the captures of USC-NSL/policing-detection are not here")
@pytest.mark.parametrize("name", ["CP=10008", "CP=10836", "CP=10811"])
def test_real_captures(name: str, tmp_path: Path) -> None:
    """Each command answers or says why not, and an anonymous copy gives the same path."""
    (file,) = REAL.glob(f"*{name}.pcap.xz")
    copy = tmp_path / "copy.pcap"
    said("inspect", file, "--anonymise", copy)
    ours, theirs = path_of(copy), path_of(file)
    for field in ("base_rtt_ms", "rate_bps", "queue", "buffer_bytes", "policer_rate_bps", "random_loss"):
        assert ours[field] == theirs[field], field
    document = said("identify", file)
    assert document["answer"] in (None, "cubic")
    assert document["reason"]
    ended = CliRunner().invoke(
        app, ["whatif", str(file), "bbr", "--sender-algorithm", "cubic", "--out", str(tmp_path / "out")]
    )
    if ended.exit_code == 0:
        page = (tmp_path / "out" / "whatif.html").read_text()
        assert "10.0.0." not in page, "no addresses unless asked for"
    else:
        assert isinstance(ended.exception, BadInputError)


def test_bad_words_of_anonymise(cubic: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.pcap"
    text.write_text("no capture")
    for words, message in (
        ((cubic, cubic, "--anonymise", tmp_path / "a"), "one capture"),
        ((cubic, "--anonymise", cubic), "another file than the capture"),
        ((cubic, "--anonymise", tmp_path), "a file in a folder that can be written"),
        (
            (cubic, "--infer", "--anonymise", tmp_path / "a"),
            "without --labels, --infer, --save-path and --out",
        ),
        ((text, "--anonymise", tmp_path / "a"), "text.pcap"),
    ):
        assert message in refusal("inspect", *words)
    assert not (tmp_path / "a").exists()
    assert cubic.stat().st_size > 0
