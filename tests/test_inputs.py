"""The kind of each input, and how often a text is opened."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragstrip.cli import app
from dragstrip.errors import BadInputError
from dragstrip.interop.inputs import input_of

SCRIPT = "tc qdisc replace dev eth0 root fq_codel\n"
PING = (
    "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n"
    "64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=12.3 ms\n"
    "64 bytes from 192.0.2.1: icmp_seq=2 ttl=64 time=12.5 ms\n"
)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (SCRIPT.encode(), "script"),
        (gzip.compress(SCRIPT.encode(), mtime=0), "script"),
        (PING.encode(), "measurements"),
        (gzip.compress(PING.encode(), mtime=0), "measurements"),
        (PING.encode("utf-16"), "measurements"),
        (bytes.fromhex("d4c3b2a1") + bytes(20), "capture"),
        (b"\n\r\r\n" + bytes(20), "capture"),
        (b"", "capture"),
        (b"<!doctype html>", "capture"),
    ],
)
def test_a_file_has_one_kind(tmp_path: Path, content: bytes, kind: str) -> None:
    file = tmp_path / "given"
    file.write_bytes(content)
    assert input_of(file).kind == kind


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ((), "folder"),
        (("provenance.json",), "recording"),
        (("result.json", "compare-000/provenance.json"), "run"),
        (("sweep.json", "result.json"), "sweep"),
        (("server/provenance.json",), "recordings"),
    ],
)
def test_a_folder_has_one_kind(tmp_path: Path, names: tuple[str, ...], kind: str) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    folder = input_of(tmp_path)
    assert folder.kind == kind
    remedy = "expected files in it" if kind == "folder" else "dragstrip report shows it"
    with pytest.raises(BadInputError, match=remedy):
        folder.expect_file()


@pytest.mark.parametrize("command", ["inspect", "diagnose"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_text_is_opened_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, packed: bool
) -> None:
    file = tmp_path / "ping.txt"
    file.write_bytes(gzip.compress(PING.encode(), mtime=0) if packed else PING.encode())
    opened: list[str] = []
    original: Callable[..., Any] = io.open

    def counted(path: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(path, str | os.PathLike) and os.fspath(path) == str(file):
            opened.append(str(path))
        return original(path, *arguments, **options)

    monkeypatch.setattr("builtins.open", counted)
    monkeypatch.setattr("io.open", counted)
    result = CliRunner().invoke(app, [command, str(file)])
    assert result.exit_code == 0, result.output
    assert opened == [str(file)]
