"""The answer of a study as an object: its document, its figures by name, and its text."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

REPR_MAX = 300
"""Characters of the line that `repr` gives, at most."""


def repr_line(text: str) -> str:
    """Return the text of a `repr`, which ends with `>`, cut to `REPR_MAX` characters."""
    return text if len(text) < REPR_MAX else f"{text[: REPR_MAX - 10]} …>"


class StudyDocument(Mapping[str, Any]):
    """An answer: the document that the command prints with `--json`, as a mapping.

    `str()` is the text that the command prints; a notebook shows a picture where there is one for it
    (`display/notebook.py`), else this text. `repr()` is one line, with its `headline`. `to_dict()` gives a
    copy of the document.
    """

    def __init__(self, document: Mapping[str, Any], text: str) -> None:
        self._document = document
        self._text = text

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of the document."""
        return copy.deepcopy(dict(self._document))

    def __getitem__(self, key: str) -> Any:
        return self._document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    def __str__(self) -> str:
        return self._text

    @property
    def headline(self) -> str:
        """The main content in one line; of a kind without one of its own, the first line of the text."""
        return next((line for line in self._text.splitlines() if line.strip()), "")

    def __repr__(self) -> str:
        return repr_line(f"<{type(self).__name__}: {' '.join(self.headline.split())}>")

    def _repr_html_(self) -> str:
        from dragstrip.display import html, notebook

        if type(self).__name__ in notebook.DRAWERS:
            return notebook.html_of(self)
        return html.part("display/templates/text_cell.html", text=self._text)


class Listing(list[dict[str, Any]]):
    """Rows; a notebook shows the fields that all of them have as a table."""

    def _repr_html_(self) -> str:
        from dragstrip.display import html

        fields = list(dict.fromkeys(field for row in self for field in row))
        fields = [
            field for field in fields if all(isinstance(row.get(field), str | int | float) for row in self)
        ]
        return html.part("display/templates/listing_cell.html", fields=fields, rows=self)
