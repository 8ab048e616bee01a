"""The boundary to the outside: input is read within limits and made safe before it is printed.

Every file is opened by this module (tests/test_untrusted.py). It must be a regular file of limited size, and
its rows, nesting and number of values are limited before they are decoded. Each refusal is a `BadInputError`
that names the file and the limit.
"""

from __future__ import annotations

import io
import json
import os
import re
import stat
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from dragstrip.errors import BadInputError, Raw

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

DESCRIPTION_MAX = MIB
"""Bytes of a TOML file, at most; the longest in the catalogue has 20 kB."""
SCRIPT_MAX = MIB
"""Bytes of a conformance script, at most."""
SOURCE_MAX = 16 * MIB
"""Bytes of a source file or header, at most."""
TRACE_MAX = 16 * MIB
"""Bytes of a recorded link, at most: one time per packet, so about 40 Gbit of traffic."""
JSON_MAX = 256 * MIB
"""Bytes of a JSON document, at most; the scenario of a hundred thousand hosts has 80 MB."""
VALUES_MAX = 20_000_000
"""Approximate limit of values in a JSON document: a list of empty lists takes thirty times its text in
memory."""
NESTING_MAX = 64
"""Depth of a JSON or TOML document, at most."""
BINARY_MAX = GIB
"""Bytes of a kernel, a module or a program, at most."""
TABLE_MAX = 4 * GIB
"""Bytes of a Parquet file, at most."""
CAPTURE_MAX = 1 << 50
"""Bytes of a capture, at most; it is read in pieces."""
PIECE = MIB
"""Bytes of a capture that are read at once."""
EXPANSION_MAX = 1_000
"""Ratio of unpacked to packed bytes of a capture, at most, once `EXPANSION_FREE` bytes are unpacked."""
EXPANSION_FREE = 4 * GIB
DECODED_MAX = 2 * GIB
"""Bytes of memory that the requested columns of a Parquet file may take."""
COLUMNS_MAX = 1_000
"""Columns of a Parquet file, at most."""


def size_text(count: int) -> str:
    """Return a number of bytes in binary units, such as `16 MiB`."""
    for size, unit in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


def unreadable(path: Path | str, error: OSError) -> BadInputError:
    """Return an operating system's error as a `BadInputError` that names the path."""
    if isinstance(error, FileNotFoundError):
        return BadInputError("", None, "no such file", str(path))
    return BadInputError("", None, f"cannot be read: {error.strerror or error}", str(path))


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _expect_regular(path: Path | str, status: os.stat_result, most: int, description: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for test, name in _KINDS if test(status.st_mode)), "something else")
        raise BadInputError("", None, f"is {kind}, expected a regular file: {description}", str(path))
    if status.st_size > most:
        size = size_text(status.st_size)
        exact = f"{status.st_size:,} bytes, {status.st_size - most:,} more than allowed"
        _too_large(path, Raw(exact if size == size_text(most) else size), most, description)


def _too_large(path: Path | str, size: Raw, most: int, description: str) -> None:
    raise BadInputError("", size, f"at most {size_text(most)} for {description}", str(path))


def expect_file(path: Path | str, most: int, description: str) -> None:
    """Raise `BadInputError` unless `path` is a regular file of at most `most` bytes, without opening it."""
    try:
        _expect_regular(path, Path(path).stat(), most, description)
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError as error:  # a null byte in the name
        raise BadInputError("", None, f"is not a file name: {error}", str(path)) from None


def link_target(path: Path) -> str | None:
    """Return the path in a symbolic link, or None where there is none."""
    try:
        return str(path.readlink())
    except OSError:
        return None


@contextmanager
def opened(path: Path | str, most: int = BINARY_MAX, description: str = "a file") -> Iterator[BinaryIO]:
    """Open a regular file of at most `most` bytes for reading, without ever waiting on a named pipe.

    Raises `BadInputError`.
    """
    expect_file(path, most, description)  # opening a device or a pipe can itself do something
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            _expect_regular(path, os.fstat(file.fileno()), most, description)
            yield file
    except OSError as error:
        raise unreadable(path, error) from None


def content(path: Path | str, most: int = BINARY_MAX, description: str = "a file") -> bytes:
    """Return the bytes of a regular file of at most `most` bytes; raises `BadInputError`."""
    with opened(path, most, description) as file:
        data = file.read(most + 1)
    if len(data) > most:  # it says that it is smaller, as files of /proc do
        _too_large(path, Raw("more"), most, description)
    return data


def text(path: Path | str, most: int, description: str, encoding: str = "utf-8") -> str:
    """Return the text of a regular file of at most `most` bytes; raises `BadInputError`."""
    return decoded(content(path, most, description), str(path), encoding)


def decoded(data: bytes, source: str, encoding: str = "utf-8") -> str:
    """Return bytes as text; raises `BadInputError`."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        byte = f"byte {error.start} is {error.object[error.start]:#04x}"
        expected = f"cannot be read: it is not {encoding.upper()} text, {byte}"
        raise BadInputError("", None, expected, source) from None


def text_or_input(path: Path | str, most: int, description: str) -> tuple[str, str]:
    """Return the text of a file of at most `most` bytes, or of standard input for `-`, and its name.

    Raises `BadInputError`.
    """
    if str(path) != "-":
        return text(path, most, description), str(path)
    name = "standard input"
    data = sys.stdin.buffer.read(most + 1)
    if len(data) > most:
        _too_large(name, Raw("more"), most, description)
    return decoded(data, name), name


# --- documents --------------------------------------------------------------------------------


def parsed_json(
    document: str | bytes, source: str, description: str = "a JSON document", strict: bool = False
) -> Any:
    """Parse JSON from outside, with limits on nesting and number of values; raises `BadInputError`.

    A `strict` document has no key twice in an object, and neither NaN nor Infinity.
    """
    if isinstance(document, str):
        document = document.encode(errors="surrogatepass")
    mark_counts = [document.count(mark) for mark in (b",", b"[", b"{")]
    if sum(mark_counts) > VALUES_MAX:
        raise BadInputError("", Raw(f"about {sum(mark_counts)} values"), f"at most {VALUES_MAX}", source)
    try:
        value = json.loads(document, **_STRICT) if strict else json.loads(document)
    except RecursionError:
        raise _too_deep(source) from None
    except ValueError as error:
        raise BadInputError(
            "", None, f"is not {description} that can be read: {first_line(error)}", source
        ) from None
    if sum(mark_counts[1:]) > NESTING_MAX:
        expect_shallow(value, source)
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"key {key[:40]!a} appears twice")
        table[key] = value
    return table


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


_STRICT: dict[str, Any] = {
    "object_pairs_hook": _distinct,
    "parse_constant": _refuse_constant,
}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def json_object(path: Path | str) -> dict[str, Any]:
    """Return the JSON object in a file; raises `BadInputError`."""
    data = content(path, JSON_MAX, "a JSON document")
    value = parsed_json(data, str(path))
    if _SURROGATE.search(data):  # half a pair is no character: it can be shown, stored and hashed nowhere
        value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    if not isinstance(value, dict):
        raise BadInputError("", None, "is not a JSON object", str(path))
    return value


def unpacked(packed: bytes, most: int, description: str, source: str) -> bytes:
    """Decompress xz data of at most `most` bytes unpacked; raises `BadInputError`."""
    import lzma

    machine = lzma.LZMADecompressor(memlimit=BINARY_MAX)
    try:
        data = machine.decompress(packed, most + 1)
    except (lzma.LZMAError, EOFError) as error:
        expected = f"is not {description} compressed with xz: {first_line(error)}"
        raise BadInputError("", None, expected, source) from None
    if len(data) > most:
        _too_large(source, Raw("more, unpacked"), most, description)
    if not machine.eof:
        raise BadInputError("", None, f"is not {description} compressed with xz: its end is missing", source)
    return data


def capture_pieces(path: Path | str) -> Iterator[tuple[bytes, float]]:
    """Yield the bytes of a capture in pieces, decompressed if needed (gzip, xz, zstd).

    Each piece comes with the share of the file read so far, from 0 to 1. A file that grows meanwhile is read
    up to its size at the beginning. Raises `BadInputError` if it is damaged or unpacks to more than
    `EXPANSION_MAX` allows.
    """
    with opened(path, CAPTURE_MAX, "a capture") as file:
        size = os.fstat(file.fileno()).st_size
        bytes_read = 0

        def packed() -> bytes:
            nonlocal bytes_read
            piece = file.read(min(PIECE, size - bytes_read))
            bytes_read += len(piece)
            return piece

        unpacked_so_far = 0
        for piece in _unpacking(packed, str(path)):
            unpacked_so_far += len(piece)
            if unpacked_so_far > max(EXPANSION_FREE, EXPANSION_MAX * size):
                _too_large(
                    path, Raw(f"more than {EXPANSION_MAX} times its size, unpacked"), EXPANSION_FREE, "it"
                )
            yield piece, bytes_read / max(size, 1)


def unpacked_content(path: Path | str, most: int, description: str) -> tuple[bytes, bytes]:
    """Return a file's bytes, as stored and decompressed if needed (gzip, xz, zstd), each at most `most`.

    Raises `BadInputError`.
    """
    packed = content(path, most, description)
    return packed, _decompressed(packed, path, most, description)


def _decompressed(packed: bytes, path: Path | str, most: int, description: str) -> bytes:
    pieces, size, rest = [], 0, [packed]
    for piece in _unpacking(lambda: rest.pop() if rest else b"", str(path)):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            _too_large(path, Raw("more, unpacked"), most, description)
    return b"".join(pieces)


class UnknownFile:
    """An open file of unknown format: its first piece, and all of it on request, read once."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path = file, path
        self._packed: list[bytes] = []
        self.begin = next(_unpacking(self._piece, str(path)), b"")
        """The first bytes, decompressed if needed (gzip, xz, zstd)."""

    def _piece(self) -> bytes:
        self._packed.append(self._file.read(PIECE))
        return self._packed[-1]

    def content(self, most: int, description: str) -> tuple[bytes, bytes]:
        """Return all bytes, as stored and decompressed, each at most `most`; raises `BadInputError`."""
        _expect_regular(self._path, os.fstat(self._file.fileno()), most, description)
        packed = b"".join(self._packed)
        packed += self._file.read(max(0, most + 1 - len(packed)))
        if len(packed) > most:
            _too_large(self._path, Raw("more"), most, description)
        return packed, _decompressed(packed, self._path, most, description)


@contextmanager
def unknown_file(path: Path) -> Iterator[UnknownFile]:
    """Open a file whose format its first piece tells; raises `BadInputError`."""
    with opened(path, CAPTURE_MAX, "a capture") as file:
        yield UnknownFile(file, path)


def _unpacking(packed: Callable[[], bytes], source: str) -> Iterator[bytes]:
    first = packed()
    kinds = {b"\x1f\x8b": _gzip, b"\xfd7zXZ\x00": _xz, b"\x28\xb5\x2f\xfd": _zstd}
    kind = next((unpacker for magic, unpacker in kinds.items() if first.startswith(magic)), None)
    if kind is None:
        while first:
            yield first
            first = packed()
        return
    try:
        yield from kind(first, packed)
    except (ValueError, EOFError, OSError) as error:
        raise BadInputError("", None, f"cannot be unpacked: {first_line(error)}", source) from None


def _gzip(piece: bytes, packed: Callable[[], bytes]) -> Iterator[bytes]:
    import zlib

    machine = zlib.decompressobj(wbits=31)
    while piece:
        try:
            yield machine.decompress(piece, PIECE)
        except zlib.error as error:
            raise ValueError(error) from None
        piece = machine.unconsumed_tail
        if machine.eof:
            piece = machine.unused_data or packed()
            machine = zlib.decompressobj(wbits=31)
        piece = piece or packed()


def _xz(piece: bytes, packed: Callable[[], bytes]) -> Iterator[bytes]:
    import lzma

    machine = lzma.LZMADecompressor(memlimit=GIB)
    while piece or not machine.needs_input:
        try:
            yield machine.decompress(piece, PIECE)
        except lzma.LZMAError as error:
            raise ValueError(error) from None
        piece = b""
        if machine.eof:
            piece = machine.unused_data.lstrip(b"\x00")  # stream padding
            machine = lzma.LZMADecompressor(memlimit=GIB)
        if machine.needs_input and not piece:
            piece = packed()


class _Pieces(io.RawIOBase):
    """A file object over a function that returns bytes piece by piece."""

    def __init__(self, first: bytes, packed: Callable[[], bytes]) -> None:
        self._rest, self._packed = first, packed

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self._rest = self._rest or self._packed()
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece


def _zstd(piece: bytes, packed: Callable[[], bytes]) -> Iterator[bytes]:
    import pyarrow as pa

    with pa.CompressedInputStream(pa.PythonFile(_Pieces(piece, packed), mode="r"), "zstd") as stream:
        while data := stream.read(PIECE):
            yield data


def packed_json(path: Path) -> Any:
    """Return the value of a JSON file, which is xz-compressed if its name ends in `.xz`.

    Raises `BadInputError`.
    """
    data = content(path, JSON_MAX, "a JSON document")
    if path.suffix == ".xz":
        data = unpacked(data, JSON_MAX, "a JSON document", str(path))
    return parsed_json(data, str(path))


_PART = re.compile(r"[\w\"'-]++[ \t]*+(\.?)[ \t]*+")


def nested_key(document: str) -> bool:
    """Return whether a dotted key of a TOML text is nested too deep.

    The parser's time is quadratic in the length of such a key, so this is checked first.
    """
    deep, end = 0, -1
    for part in _PART.finditer(document):
        deep = (deep if part.start() == end else 0) + 1 if part[1] else 0
        if deep == NESTING_MAX:
            return True
        end = part.end()
    return False


def parsed_toml(path: Path | str, description: str = "a TOML file") -> dict[str, Any]:
    """Return the table in a TOML file of limited size and nesting; raises `BadInputError`."""
    document = text(path, DESCRIPTION_MAX, description).removeprefix("\ufeff")
    if nested_key(document):
        raise _too_deep(str(path))
    try:
        table = tomllib.loads(document)
    except RecursionError:
        raise _too_deep(str(path)) from None
    except ValueError as error:  # of integers with thousands of digits too
        raise BadInputError("", None, f"is not TOML: {first_line(error)}", str(path)) from None
    expect_shallow(table, str(path))
    return table


def expect_shallow(value: object, source: str) -> None:
    """Raise `BadInputError` if lists and tables are nested deeper than `NESTING_MAX`."""
    level = [value]
    for _ in range(NESTING_MAX):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)  # type: ignore[attr-defined]
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise _too_deep(source)


def _too_deep(source: str) -> BadInputError:
    return BadInputError("", None, f"is nested more than {NESTING_MAX} deep", source)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return (str(error).splitlines() or [type(error).__name__])[0][:LINE_MAX]


# --- tables -----------------------------------------------------------------------------------


@contextmanager
def parquet(
    path: Path, kinds: Mapping[str, str], columns: Sequence[str] | None = None
) -> Iterator[tuple[pq.ParquetFile, pa.Schema]]:
    """Open a Parquet file whose metadata match `kinds` and whose columns fit into `DECODED_MAX`.

    `kinds` maps each known column to `int`, `text`, `bool` or `float`. The columns in `columns` (None: all
    known ones) that the file has are checked and counted. Text is read dictionary-encoded, so that a short
    file cannot expand without limit; the schema that is yielded with the file is the file's own
    (`spelled_out`). Errors of Arrow and of the operating system are raised as `BadInputError`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    expect_file(path, TABLE_MAX, "a table")
    try:
        with _arrow_source(path) as source, pq.ParquetFile(source) as file:
            schema, metadata = file.schema_arrow, file.metadata
        present = [name for name in (kinds if columns is None else columns) if name in schema.names]
        _expect_table(path, metadata.num_rows, schema, {name: kinds[name] for name in present})
        words = [name for name in present if kinds[name] == "text"]
        with (
            _arrow_source(path) as source,
            pq.ParquetFile(
                source, metadata=metadata, read_dictionary=words, page_checksum_verification=True
            ) as file,
        ):
            yield file, schema
    except FileNotFoundError as error:
        raise unreadable(path, error) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = f"is not a Parquet table that can be read ({first_line(error)}); expected a Parquet file"
        raise BadInputError("", None, reason, str(path)) from error


def _arrow_source(path: Path) -> AbstractContextManager[Path | IO[bytes]]:
    """Return the path for Arrow to open, or, where its name is not UTF-8, the opened file."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return path.open("rb")
    return nullcontext(path)


def _expect_table(path: Path, rows: int, schema: pa.Schema, expected_kinds: Mapping[str, str]) -> None:
    if len(schema.names) > COLUMNS_MAX:
        raise BadInputError("", Raw(f"{len(schema.names)} columns"), f"at most {COLUMNS_MAX}", str(path))
    for name, kind in expected_kinds.items():
        if schema.names.count(name) > 1:
            raise BadInputError(name, None, "appears twice in this table", str(path))
        arrow_type = schema.field(name).type
        if not _is_kind(arrow_type, kind):
            raise BadInputError(name, Raw(str(arrow_type)), f"a column of type {kind}", str(path))
    most = rows_within(len(expected_kinds))
    if rows > most:
        raise BadInputError(
            "", Raw(f"{rows} rows"), f"at most {most} of {len(expected_kinds)} columns", str(path)
        )


def rows_within(columns: int) -> int:
    """Return how many rows of so many columns `parquet` reads at most."""
    return DECODED_MAX // (_VALUE_BYTES * max(1, columns))


_VALUE_BYTES = 8


def _is_kind(arrow_type: pa.DataType, kind: str) -> bool:
    from pyarrow import types

    plain = arrow_type.value_type if types.is_dictionary(arrow_type) else arrow_type
    tests: Mapping[str, Callable[[Any], bool]] = {
        "int": types.is_integer,
        "text": lambda data_type: types.is_string(data_type) or types.is_large_string(data_type),
        "bool": types.is_boolean,
        "float": lambda data_type: types.is_floating(data_type) or types.is_integer(data_type),
    }
    return types.is_null(plain) or tests[kind](plain)


def kind_of(arrow_type: pa.DataType) -> str:
    """Return the kind of an Arrow type, as `parquet` takes it."""
    return next(kind for kind in ("text", "bool", "int", "float") if _is_kind(arrow_type, kind))


def spelled_out(table: pa.Table, schema: pa.Schema, path: Path) -> pa.Table:
    """Return the table with its text columns as in the file's schema, dictionary-encoded or plain.

    Raises `BadInputError` if the result would exceed `DECODED_MAX` bytes.
    """
    from pyarrow import types

    for at, name in enumerate(table.column_names):
        file_type, column = schema.field(name).type, table.column(at)
        if not types.is_dictionary(column.type) or types.is_dictionary(file_type):
            continue
        length = sum(_length(chunk) for chunk in column.chunks)
        if length > DECODED_MAX:
            expected = f"at most {size_text(DECODED_MAX)} of text in a column"
            raise BadInputError(name, Raw(size_text(length)), expected, str(path))
        table = table.set_column(at, name, column.cast(file_type))
    return table


def _length(chunk: Any) -> int:
    """Return the bytes of a chunk's texts written one after the other, at most."""
    import numpy as np

    lengths = np.array([len(word or "") for word in chunk.dictionary.to_pylist()], dtype=np.int64)
    indexes = np.asarray(chunk.indices.drop_null())
    return 4 * int(lengths[indexes].sum())  # of UTF-8, at most


# --- quantities and options -------------------------------------------------------------------


def whole_number(digits: str, most: int) -> int | None:
    """Return the number written in the digits 0 to 9, or None for other text and numbers above `most`."""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))):
        return None
    return int(digits) if int(digits) <= most else None


# --- what is shown ----------------------------------------------------------------------------

LINE_MAX = 2_000
"""Characters of an error message, at most."""

_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # a terminal obeys them; not tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they change the direction of what follows
    "\ud800-\udfff]"  # no characters: bytes of a path that is not UTF-8
)


def printable(text: str) -> str:
    r"""Return the text with terminal control characters replaced by escapes such as `\x1b`.

    A byte of a path that is not UTF-8, which Python keeps as a surrogate, is written as that byte: `\xff`.
    """
    return _COMMANDS.sub(lambda match: _escaped(match[0]), text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else ascii(character)[1:-1]


def printable_json(document: str) -> str:
    """Return a JSON text with terminal control characters replaced by JSON escapes of the same values."""
    return _COMMANDS.sub(lambda match: f"\\u{ord(match[0]):04x}", document)


FORMULA = re.compile(r"[=+\-@\t\r]")
"""Beginnings of a cell that a spreadsheet takes for a formula or a command."""


def cell(value: str) -> str:
    """Return a text for a cell of CSV, behind an apostrophe if a spreadsheet would take it for a formula."""
    return f"'{value}" if FORMULA.match(value) else value


def one_line(text: str) -> str:
    """Return a text from outside as part of one line, safe to print and at most `LINE_MAX` characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= LINE_MAX else line[: LINE_MAX - 3] + "..."
