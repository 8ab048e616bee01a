"""A diagnosis without addresses and folders, as it is written for others to read."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_ADDRESS = re.compile(
    r"(?<![\w.:])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)"
    r"|(?<![\w.:])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:(?:\d{1,3}\.){3}\d{1,3})?(?![\w:])"
)
"""Candidates for addresses: four numbers, or groups of hexadecimal digits; `ipaddress` decides."""


def without_addresses(document: Any, hosts: Iterable[str] = ()) -> Any:
    """Return a JSON document in which each address and each of these hosts is `host 1`, `host 2`, ...

    The same host has the same number everywhere. Paths in `path`, `file` and `compare` fields keep only the
    name of the file.
    """
    folders = sorted({str(Path(file["path"])) for file in document["files"]}, key=len, reverse=True)
    files = {file: Path(file).name for file in folders}
    names = sorted(hosts, key=lambda name: (-len(name), name))
    numbers: dict[str, str] = {}

    def numbered(name: str) -> str:
        return numbers.setdefault(name, f"host {len(numbers) + 1}")

    def address(match: re.Match[str]) -> str:
        try:
            return numbered(str(ipaddress.ip_address(match[0])))
        except ValueError:
            return match[0]

    def hidden(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: hidden(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [hidden(entry) for entry in value]
        if not isinstance(value, str):
            return value
        for file, name in files.items():
            value = value.replace(file, name)
        value = _ADDRESS.sub(address, value)
        for name in names:
            if name in value:
                value = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", numbered(name), value)
        return value

    return hidden(document)
