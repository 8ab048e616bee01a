"""The core as text for the page: compressed with LZMA, seven bits a character.

    python pack.py core.wasm core.txt

Deflate looks back 32 kB, and a module repeats itself over more than a megabyte: LZMA makes it a quarter
smaller. Base64 has six bits a byte. Here each byte holds seven, but where that would be a character that HTML
reads as another one or as the beginning of a tag: then two bytes say which of them it is and hold the next
seven bits as well. src/unpack.ts reads it.
"""

import lzma
import sys
from pathlib import Path

LC, LP, PB = 4, 0, 0
"""What predicts a literal: four bits of the byte before it; no position, as instructions are not aligned."""
TAKEN = (0, 10, 13, 60)
"""NUL, LF, CR and <."""
PAIRS = 0x200
"""The first of the characters of two bytes: place in TAKEN, then seven bits."""


def text(data: bytes) -> str:
    """Bytes as characters of seven bits, the last one filled up with zeros."""
    bits = int.from_bytes(data, "big")
    length = len(data) * 8
    fill = -length % 7
    bits <<= fill
    digits = f"{bits:0{length + fill}b}"
    values = [int(digits[at : at + 7], 2) for at in range(0, len(digits), 7)]
    made = []
    rest = iter(values)
    for value in rest:
        if value in TAKEN:
            made.append(chr(PAIRS | TAKEN.index(value) << 7 | next(rest, 0)))
        else:
            made.append(chr(value))
    return "".join(made)


FILTER = {"id": lzma.FILTER_LZMA1, "dict_size": 1 << 22, "lc": LC, "lp": LP, "pb": PB,
          "nice_len": 273, "mf": lzma.MF_BT4, "depth": 2000}  # fmt: skip


def packed(module: bytes) -> bytes:
    """Four bytes with the module's length, the first the highest, then LZMA's stream."""
    stream = lzma.compress(module, format=lzma.FORMAT_RAW, filters=[FILTER])
    return len(module).to_bytes(4, "big") + stream


def unpacked(written: str) -> bytes:
    """The module behind such text."""
    digits = []
    for code in map(ord, written):
        if code >= PAIRS:
            digits.append(f"{TAKEN[code - PAIRS >> 7]:07b}")
        digits.append(f"{code & 127:07b}")
    bits = "".join(digits)
    data = bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) - 7, 8))
    stream = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[FILTER])
    return stream.decompress(data[4:], int.from_bytes(data[:4], "big"))


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_text(text(packed(source.read_bytes())), encoding="utf-8", newline="\n")
