"""Commands that refuse an option given twice, of which the parser would silently take the last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import typer
import typer.core

from dragstrip.errors import BadInputError, Raw

Body = TypeVar("Body", bound=Callable[..., Any])


class Once(typer.core.TyperCommand):
    """A command whose options are given once each, except those that take several values."""

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser, which raises `BadInputError` for an option that is given again."""
        parser: Any = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            opts, rest, order = parse(args=args)
            for option, times in Counter(order).items():
                if times > 1 and isinstance(option, typer.core.TyperOption) and not _repeats(option):
                    name = max(option.opts, key=len)
                    raise BadInputError(name, Raw(f"{times} values"), "one", "command line")
            return opts, rest, order

        parser.parse_args = parse_args
        return parser


def _repeats(option: typer.core.TyperOption) -> bool:
    return option.multiple or option.is_flag or option.count


class Commands(typer.Typer):
    """An application whose commands are `Once`."""

    def command(  # type: ignore[override]  # Typer's own parameters, by name
        self, name: str | None = None, *, cls: type[Once] = Once, **settings: Any
    ) -> Callable[[Body], Body]:
        """Register a command as `typer.Typer` does."""
        return super().command(name, cls=cls, **settings)
