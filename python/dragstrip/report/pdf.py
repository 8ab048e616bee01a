"""Makes PDFs reproducible: the same picture gives the same bytes.

svg2pdf (in vl-convert) keeps resources in hash maps that are seeded anew in each process. Entries of resource
dictionaries come in any order, and either of two fonts may be the first, which changes names in the page's
stream, object numbers and offsets. Here fonts are numbered in the order of their names, entries are sorted,
objects are numbered as they are reached from the catalogue, and the cross-reference table is written anew.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from dragstrip.errors import DragstripError

_OFFSET = re.compile(rb"(\d{10}) \d{5} n")
_REFERENCE = re.compile(rb"\b(\d+) 0 R\b")
_LENGTH = re.compile(rb"/Length (\d+)")
_RESOURCES = re.compile(
    rb"( */(?:XObject|ExtGState|Font|Pattern|Shading|ColorSpace) <<\n)(.*?)(\n *>>)", re.S
)
_FONTS = re.compile(rb"/Font <<\n(.*?)\n *>>", re.S)
_FONT = re.compile(rb"/(fo\d+) (\d+) 0 R")
_BASE = re.compile(rb"/BaseFont /(\S+)")
_ROOT = re.compile(rb"/(Root|Info) (\d+) 0 R")
_DEFLATED = b"/Filter /FlateDecode"


@dataclass
class _Object:
    head: bytes
    stream: bytes | None


def ordered(pdf: bytes) -> bytes:
    """Return the document in its canonical order; raises `DragstripError` for a PDF not made by svg2pdf."""
    trailer = pdf.rpartition(b"trailer")[2]
    ends = {name: int(number) for name, number in _ROOT.findall(trailer)}
    objects = dict(_object(pdf, int(place)) for place in _OFFSET.findall(pdf.rpartition(b"\nxref\n")[2]))
    if b"Root" not in ends or ends[b"Root"] not in objects:
        raise DragstripError("this PDF has no catalogue that could be read")
    _name_fonts(objects)
    for pdf_object in objects.values():
        pdf_object.head = _RESOURCES.sub(_sorted, pdf_object.head)
    numbers: dict[int, int] = {}
    for root in ends.values():
        _reach(root, objects, numbers)
    return _serialised(objects, numbers, ends)


def _object(pdf: bytes, place: int) -> tuple[int, _Object]:
    number, _, _ = pdf[place : place + 20].partition(b" ")
    start = pdf.index(b"obj\n", place) + 4
    end = pdf.index(b"\nendobj", start)
    marker = pdf.find(b"\nstream\n", start, end)
    if marker < 0:
        return int(number), _Object(pdf[start:end], None)
    head = pdf[start:marker]
    length = _LENGTH.search(head)
    if length is None:
        raise DragstripError("this PDF has a stream without a length")
    first = marker + len(b"\nstream\n")
    return int(number), _Object(head, pdf[first : first + int(length[1])])


def _name_fonts(objects: dict[int, _Object]) -> None:
    """Number the fonts in the order of their names, and rename them in the streams that use them.

    A name such as `fo1` is that of the page or form in whose resources it stands; another may have it for
    another font.
    """
    owners = [pdf_object for pdf_object in objects.values() if _FONTS.search(pdf_object.head)]
    local_names = [
        {name: number for entry in _FONTS.findall(owner.head) for name, number in _FONT.findall(entry)}
        for owner in owners
    ]
    numbers = {number for names in local_names for number in names.values()}
    base = {number: _BASE.search(objects[int(number)].head) for number in numbers}
    order = sorted(base, key=lambda number: (match[1] if (match := base[number]) else b"", int(number)))
    names_by_number = {number: b"fo%d" % rank for rank, number in enumerate(order)}
    for owner, names in zip(owners, local_names, strict=True):
        renamed = {name: names_by_number[number] for name, number in names.items()}
        owner.head = _renamed(owner.head, renamed)
        contents = re.search(rb"/Contents (\d+) 0 R", owner.head)
        stream = objects[int(contents[1])] if contents else owner
        if stream.stream is not None and _DEFLATED in stream.head:
            stream.stream = zlib.compress(_renamed(zlib.decompress(stream.stream), renamed), 9)


def _renamed(text: bytes, names: dict[bytes, bytes]) -> bytes:
    return re.sub(rb"/(fo\d+)\b", lambda match: b"/" + names.get(match[1], match[1]), text)


def _sorted(resources: re.Match[bytes]) -> bytes:
    entries = sorted(resources[2].split(b"\n"), key=lambda entry: (len(entry.split()[0]), entry))
    return resources[1] + b"\n".join(entries) + resources[3]


def _reach(number: int, objects: dict[int, _Object], numbers: dict[int, int]) -> None:
    """Number an object and all that it refers to, in reading order."""
    if number in numbers or number not in objects:
        return
    numbers[number] = len(numbers) + 1
    for reference in _REFERENCE.findall(objects[number].head):
        _reach(int(reference), objects, numbers)


def _serialised(objects: dict[int, _Object], numbers: dict[int, int], ends: dict[bytes, int]) -> bytes:
    # The second line tells programs that the file is binary (ISO 32000-1, 7.5.2).
    parts = [b"%PDF-1.7\n%\x80\x80\x80\x80\n\n"]
    places = []
    length = len(parts[0])
    for old, new in numbers.items():
        pdf_object = objects[old]
        head = _REFERENCE.sub(lambda match: b"%d 0 R" % numbers[int(match[1])], pdf_object.head)
        if pdf_object.stream is None:
            body = head
        else:
            head = _LENGTH.sub(b"/Length %d" % len(pdf_object.stream), head, count=1)
            body = head + b"\nstream\n" + pdf_object.stream + b"\nendstream"
        places.append(length)
        parts.append(b"%d 0 obj\n%b\nendobj\n\n" % (new, body))
        length += len(parts[-1])
    entries = b"".join(b"%010d 00000 n\r\n" % place for place in places)
    parts.append(b"xref\n0 %d\n0000000000 65535 f\r\n%b" % (len(places) + 1, entries))
    roots = b"".join(b"  /%b %d 0 R\n" % (name, numbers[old]) for name, old in ends.items())
    size = b"  /Size %d\n" % (len(places) + 1)
    parts.append(b"trailer\n<<\n%b%b>>\nstartxref\n%d\n%%%%EOF\n" % (size, roots, length))
    return b"".join(parts)
