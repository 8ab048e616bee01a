"""`dragstrip identify` against Nebby's sensitivity runs (Mishra et al., SIGCOMM 2024).

    git clone https://github.com/NUS-SNL/Nebby
    python bench/whatif.py --nebby Nebby

The runs are 17 algorithms of Linux over mahimahi at 50 to 400 kbit/s with an MTU of 100 bytes. The
repository has tshark's lists of their packets, without options of TCP; each becomes a capture here. Of the
340 runs those are taken whose name `algorithm/DELAYms/RATEkbit` has a SHA-256 that begins with an even byte;
the others are left for later checks.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragstrip.analysis.whatif import identify, walk
from dragstrip.errors import BadInputError

COMMIT = "e21e193"
"""Of NUS-SNL/Nebby, which the runs are read from."""
PORT = 5000
"""The receiver's."""
RAW = 101
"""Link type: IP without a link layer (pcap-linktype(7))."""
NOP, SYN, ACK = 1, 2, 16
PATIENCE_S = 60
HEADS = ("right", "wrong", identify.UNCERTAIN, identify.NONE, identify.IMPOSSIBLE)


@dataclass(frozen=True)
class Listed:
    """A run of the repository."""

    algorithm: str
    delay_ms: int
    rate_kbit: int
    text: str

    @property
    def name(self) -> str:
        """The name of which half of the runs are chosen."""
        return f"{self.algorithm}/{self.delay_ms}ms/{self.rate_kbit}kbit"

    @property
    def taken(self) -> bool:
        """Whether the run is of the half that is looked at."""
        return hashlib.sha256(self.name.encode()).digest()[0] % 2 == 0


def listed(repository: Path) -> Iterator[Listed]:
    """Yield all runs; `repository` is a clone with or without a work tree."""

    def git(*words: str) -> str:
        asked = ["git", "-C", str(repository), *words]
        found = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=PATIENCE_S)  # noqa: S603 - git
        return found.stdout

    for path in git("ls-tree", "-r", "--name-only", COMMIT, "sensitivity/").splitlines():
        _, folder, file = path.split("/")
        delay, _, rate, _ = folder.split("-")
        yield Listed(file.removesuffix(".csv"), int(delay), int(rate), git("show", f"{COMMIT}:{path}"))


def capture(run: Listed) -> bytes:
    """Return a run's TCP packets as a pcap file with nanoseconds; unknown options are no-operations."""
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, RAW)]
    for row in csv.DictReader(io.StringIO(run.text)):
        if not row["tcp.seq"] or str(PORT) not in (row["tcp.dstport"], row["tcp.srcport"]):
            continue
        packet = _packet(row)
        at = round(float(row["frame.time_relative"]) * 1e9)
        parts.append(struct.pack("<IIII", *divmod(at, 10**9), len(packet), len(packet)) + packet)
    return b"".join(parts)


def _packet(row: dict[str, str]) -> bytes:
    seq, ack, data = int(row["tcp.seq"]), int(row["tcp.ack"]), int(row["tcp.len"])
    forth = row["tcp.dstport"] == str(PORT)
    header = int(row["frame.len"]) - 20 - data
    flags = (SYN if seq == 0 and data == 0 else 0) | (ACK if ack else 0)
    ports = int(row["tcp.srcport"]), int(row["tcp.dstport"])
    tcp = struct.pack(">HHIIBBHHH", *ports, seq, ack, header // 4 << 4, flags, 65535, 0, 0)
    ends = b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02"
    source, target = ends if forth else ends[::-1]
    length = 20 + header + data
    ip = struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0x4000, 64, 6, 0) + source + target
    return ip + tcp + bytes([NOP]) * (header - 20) + bytes(data)


PAGE = f"""## `identify`: Nebby's sensitivity runs

17 algorithms of Linux over mahimahi at 50 to 400 kbit/s, with an MTU of 100 bytes and a BDP of buffer, from
[NUS-SNL/Nebby](https://github.com/NUS-SNL/Nebby) at {COMMIT} (SIGCOMM 2024). Half of the 340 runs; the others
are left for later checks. The repository has lists of packets without options of TCP, of which captures are
made here.
"""
WHY = """
The link passes up to 15 of these packets at once, 4 to 33 times a second, and idles in between because the
buffer holds no more. That is no link of one rate, which is what is inferred.
"""


def page(repository: Path, told: Callable[[str], object]) -> Iterator[str]:
    """Yield the page's section; `told` gets each answer."""
    yield PAGE
    yield from identified(repository, told)
    yield WHY


def identified(repository: Path, told: Callable[[str], object]) -> list[str]:
    """Return a table of answers, a line each rate, and why the others got none; `told` gets each answer."""
    runs = [run for run in listed(repository) if run.taken]
    with tempfile.TemporaryDirectory() as scratch:
        return _table(runs, Path(scratch), told)


def _table(runs: Sequence[Listed], folder: Path, told: Callable[[str], object]) -> list[str]:
    kinds: dict[int, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for run in runs:
        file = folder / "run.pcap"
        file.write_bytes(capture(run))
        try:
            answer = walk.identify(file, None, quiet=True)[2]
        except BadInputError as error:
            answer = identify.Answer(identify.IMPOSSIBLE, (), 0.0, error.explanation)
        kind = answer.kind
        if kind == identify.GIVEN:
            kind = "right" if run.algorithm in answer.names else "wrong"
        elif kind == identify.IMPOSSIBLE:
            reasons[re.sub(r"[0-9]+$", "N", answer.reason)] += 1
        kinds.setdefault(run.rate_kbit, Counter())[kind] += 1
        told(f"{run.name}: {kind} {', '.join(answer.names)} ({answer.reason})")
    lines = [f"| kbit/s | {' | '.join(HEADS)} |", f"|{'---|' * (1 + len(HEADS))}"]
    for rate, counts in sorted(kinds.items()):
        lines.append(f"| {rate} | {' | '.join(str(counts[head]) for head in HEADS)} |")
    total = sum(kinds.values(), Counter[str]())
    lines.append(f"| **all** | {' | '.join(f'**{total[head]}**' for head in HEADS)} |")
    return [*lines, "", *(f"- {reason}: {count}" for reason, count in reasons.most_common(8))]
