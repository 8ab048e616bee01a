"""Fetch a report, and give up on a server that is silent for two seconds."""

import sys
import time
import urllib.request

PATIENCE_S = 2.0


def fetch(url: str) -> bytes:
    """Return what the server sends. Raises `TimeoutError` if it is silent for too long."""
    content = b""
    last_s = time.monotonic()
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        while piece := answer.read(16_384):
            if time.monotonic() - last_s > PATIENCE_S:
                raise TimeoutError(f"{url}: silent for {PATIENCE_S:g} s after {len(content)} bytes")
            content += piece
            last_s = time.monotonic()
    return content


if __name__ == "__main__":
    try:
        print(len(fetch(sys.argv[1])))
    except TimeoutError as error:
        sys.exit(f"client: {error}")
