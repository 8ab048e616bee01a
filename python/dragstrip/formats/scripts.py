"""Scripts of tc commands, read by the core.

Belongs here: from a script's text to the queues that it sets up, with errors that name its line. Does not
belong here: listings that tc prints, which `readers.tc` reads.
"""

from __future__ import annotations

import json
import re
from typing import Any

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw

_COMMAND = re.compile(
    r"(?m)^[ \t]{0,40}(?:sudo )?(?:ip netns exec \S{1,60} )?(?:\S{0,40}/)?tc (?:-\S{1,10} )?(?:\S{1,30} )?"
    r"(?:qdisc|class|filter) (?:add|replace|change|del)\b"
)


def is_script(begin: str) -> bool:
    """Return whether a text has a command of tc that sets something up."""
    return bool(_COMMAND.search(begin))


def imported(script: str, source: str) -> dict[str, list[dict[str, Any]]]:
    """Return the queues that a script of tc commands sets up, and the commands that were skipped.

    Raises `BadInputError` for a command of tc without a counterpart, with its line.
    """
    try:
        found: dict[str, list[dict[str, Any]]] = json.loads(_core.import_tc(script))
    except _core.InputError as error:
        line, value, expected = error.args
        raise BadInputError(line, Raw(value), expected, source) from None
    return found
