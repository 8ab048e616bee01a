"""What several commands read from the command line: lists, pairs, endings."""

from __future__ import annotations

from dragstrip.errors import BadInputError


def figures(text: str | None, report: bool | None) -> list[str]:
    """The endings in `svg,png,pdf`, each once."""
    from dragstrip.runner import check_figures

    if text is None:
        return []
    if report is False:
        raise BadInputError("--figures", text, "no --no-report beside it", "command line")
    endings = list(dict.fromkeys(part.strip().lower() for part in text.split(",")))
    check_figures(endings)
    return endings


def settings(pairs: list[str]) -> dict[str, str]:
    """Sysctl → value."""
    return dict(named("--sysctl", pair, "KEY=VALUE, such as net.ipv4.tcp_sack=0") for pair in pairs)


def engine_options(pairs: list[str]) -> dict[str, str | list[str]]:
    """Name → value, or values where it is given several times."""
    options: dict[str, str | list[str]] = {}
    for pair in pairs:
        name, value = named("--engine-option", pair, "NAME=VALUE, such as kernel=6.1.0-56-amd64")
        known = options.get(name, [])
        options[name] = [*([known] if isinstance(known, str) else known), value] if known else value
    return options


def named(option: str, pair: str, expected: str) -> tuple[str, str]:
    """The two sides of `KEY=VALUE`."""
    key, equals, value = pair.partition("=")
    if not (key.strip() and equals and value.strip()):
        raise BadInputError(option, pair, expected, "command line")
    return key.strip(), value.strip()
