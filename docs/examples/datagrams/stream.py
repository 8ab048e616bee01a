"""Datagrams at regular times, as a video call or a game sends them, and how late they come.

    python3 stream.py serve PER_SECOND BYTES     at one end
    python3 stream.py watch SECONDS              at the other, which asks for them and prints figures

Both ends have one clock here, so that a delay is that of one way.
"""

import os
import socket
import struct
import sys
import time

PORT = 5004
STAMP = struct.Struct("!Qd")


def serve(per_second: float, size: int) -> None:
    """Send to whoever has asked, until nobody answers any more."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.bind(("", PORT))
        _, client = channel.recvfrom(100)
        start = time.monotonic()
        number = 0
        while True:
            due = start + number / per_second
            time.sleep(max(0.0, due - time.monotonic()))
            stamp = STAMP.pack(number, time.monotonic())
            channel.sendto(stamp + bytes(size - len(stamp)), client)
            number += 1


def watch(seconds: float) -> None:
    """Print how many datagrams came, and the delays of those."""
    delays_ms, last = [], -1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.settimeout(1.0)
        channel.sendto(b"begin", (os.environ["DRAGSTRIP_SERVER"], PORT))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                content, _ = channel.recvfrom(65_536)
            except TimeoutError:
                continue
            last, sent = STAMP.unpack_from(content)
            delays_ms.append((time.monotonic() - sent) * 1e3)
    if not delays_ms:
        sys.exit("nothing came")
    delays_ms.sort()
    lost = last + 1 - len(delays_ms)
    middle, late = (delays_ms[int(len(delays_ms) * share)] for share in (0.5, 0.95))
    print(
        f"{len(delays_ms)} came, {lost} lost; ms of one way: median {middle:.1f}, 95th percentile {late:.1f}"
    )


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(float(sys.argv[2]), int(sys.argv[3]))
    else:
        watch(float(sys.argv[2]))
