"""Ways through a script: where nobody knows which one is taken, all are followed and then joined.

Belongs here: what several ways have in common, and what may be assumed. Does not belong here: the commands on
a way, which `interpreter` runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from dragstrip.interop.shell.expansion import Expander
from dragstrip.interop.shell.values import (
    UNKNOWN,
    UNSET,
    Emitted,
    Expanded,
    Gap,
    LeavingError,
    LimitError,
    Position,
    RefusalError,
    State,
)


class Assumed(NamedTuple):
    """A condition that nobody knows, and the answer with which the script goes on to set up queues."""

    line: int
    condition: str
    value: str


@dataclass(slots=True)
class WayEnd:
    """The end of one of several ways."""

    label: str
    state: State
    tail: list[Emitted]
    leaving: LeavingError | None
    refusal: RefusalError | None

    @property
    def counts(self) -> list[tuple[str, ...]]:
        """The commands that set up queues."""
        return [tuple(word.text for word in command.words) for command in self.tail if command.counts]


@dataclass(slots=True)
class CallFrame:
    """A function, a loop or a shell that a way may leave, with the ways that did."""

    kinds: tuple[str, ...]
    pending: list[tuple[WayEnd, int, Gap]] = field(default_factory=list)


class Ways(Expander):
    """A shell that follows several ways."""

    def __init__(self) -> None:
        super().__init__()
        self.emitted: list[Emitted] = []
        self.assumed: list[Assumed] = []
        self.frames: list[CallFrame] = [CallFrame(("exit",))]
        self.main_line = 1

    def cause(self) -> Gap:
        """Return why the last status is not known."""
        return self.state.cause or Gap(UNKNOWN, "$?", self.position, "$?")

    def end(self, status: int | None, cause: Gap | None = None) -> None:
        """Set the status of a command; None: nobody knows it."""
        self.state.status, self.state.cause = status, cause

    def key_of(self, text: str) -> str:
        """Return a command as a value can be given for it."""
        return " ".join(text.split())

    def answer_for(self, text: str) -> str | None:
        """Return the value that is given for a command."""
        key = self.key_of(self.shown(text))
        if key in self.given:
            self.used.add(key)
            return self.given[key]
        return None

    def _snapshot(self) -> State:
        self.charge(1 + len(self.state.variables) // 20)
        return self.state.copy()

    def branch(self, cause: Gap, ways: list[tuple[str, Callable[[], None]]]) -> None:
        """Follow each way; they must set up the same queues, and variables that differ are not known."""
        start, begin = self._snapshot(), len(self.emitted)
        outcomes: list[WayEnd] = []
        for label, way in ways:
            self.state = start.copy()
            leaving = refusal = None
            try:
                way()
            except LeavingError as error:
                leaving = error
            except LimitError:
                raise
            except RefusalError as error:
                refusal = error
            outcomes.append(WayEnd(label, self.state, self.emitted[begin:], leaving, refusal))
            del self.emitted[begin:]
        followed = [outcome for outcome in outcomes if outcome.refusal is None]
        if len(followed) < len(outcomes):
            refusals = [outcome.refusal for outcome in outcomes if outcome.refusal is not None]
            if not followed:
                self.state = start
                raise refusals[0]
            self._undecided(cause, start)
        staying = [outcome for outcome in followed if outcome.leaving is None]
        leavers = [outcome for outcome in followed if outcome.leaving is not None]
        if staying:
            if any(outcome.counts for outcome in leavers):
                self._undecided(cause, start)
            self._join(cause, start, staying)
            chosen = staying[0]
            for outcome in leavers:
                self._pend(outcome, cause, chosen.label if len(staying) == 1 else "")
            return
        kinds = {(outcome.leaving.kind, outcome.leaving.levels) for outcome in leavers if outcome.leaving}
        stronger = [outcome for outcome in leavers if outcome.leaving and outcome.leaving.kind != "exit"]
        if len(kinds) > 1 and len({outcome.leaving.kind for outcome in stronger if outcome.leaving}) == 1:
            for outcome in leavers:
                if outcome not in stronger:
                    if outcome.counts:
                        self._undecided(cause, start)
                    self._pend(outcome, cause, stronger[0].label)
            leavers = stronger
        elif len(kinds) > 1:
            self._undecided(cause, start)
        self._join(cause, start, leavers)
        assert leavers[0].leaving is not None
        raise leavers[0].leaving

    def _undecided(self, cause: Gap, start: State) -> None:
        self.state = start
        raise RefusalError(
            cause.position, cause.text, self.remedy(cause, "true") + ": the queues depend on it"
        )

    def remedy(self, gap: Gap, example: str = "") -> str:
        """Return how a value is given for a gap."""
        if not gap.key:
            return "a script in which it is plain"
        if re.fullmatch(r"[A-Za-z_]\w*", gap.key):
            return f"--set {gap.key}={example if example and gap.text == gap.key else 'VALUE'}"
        if gap.key.isdigit():
            return "the script's arguments behind its name"
        quoted = gap.key.replace("'", "'\\''")
        return f"--set '{quoted}={example or 'VALUE'}'" + (" or ...=false" if example else "")

    def _join(self, cause: Gap, start: State, outcomes: list[WayEnd]) -> None:
        """Go on with what several ways have in common."""
        if any(outcome.counts != outcomes[0].counts for outcome in outcomes):
            self._undecided(cause, start)
        longest = max(outcomes, key=lambda outcome: sum(command.queues for command in outcome.tail))
        self.emitted.extend(longest.tail)
        for outcome in outcomes:
            if outcome is not longest:
                self.emitted.extend(command for command in outcome.tail if not command.queues)
        self.state = outcomes[0].state
        for outcome in outcomes[1:]:
            self._merge(outcome.state, cause)

    def _merge(self, other: State, cause: Gap) -> None:
        """Replace by gaps what is not the same in two states."""
        state = self.state
        self.charge(1 + len(state.variables) // 20)
        for name in {**state.variables, **other.variables}:
            mine, theirs = state.variables.get(name), other.variables.get(name)
            if mine != theirs:
                state.variables[name] = self._doubtful(name, cause)
        for name, function in other.functions.items():
            if state.functions.setdefault(name, function) != function:
                state.functions[name] = cause
        for name in {**state.files, **other.files}:
            if state.files.get(name) != other.files.get(name):
                state.files[name] = self._doubtful("", cause)
        if state.output != other.output:
            common = 0
            for mine, theirs in zip(state.output, other.output, strict=False):
                if mine != theirs:
                    break
                common += 1
            state.output = state.output[:common] + self._doubtful("", cause)
        if state.status != other.status or state.status is None:
            state.status, state.cause = None, cause
        if [word.text for word in state.arguments] != [word.text for word in other.arguments]:
            state.arguments = [Expanded(self._doubtful("", cause), word.position) for word in state.arguments]

    def _doubtful(self, name: str, cause: Gap) -> str:
        """Return a gap for what two ways leave different: the cause of both is to be settled."""
        position, self.position = self.position, cause.position
        gap = self.gap(UNKNOWN, cause.text, cause.key or name, cause.origin)
        self.position = position
        return gap

    def _pend(self, outcome: WayEnd, cause: Gap, label: str) -> None:
        """Keep a way that has left a function, a loop or the shell, until that ends."""
        assert outcome.leaving is not None
        gap = Gap(UNKNOWN, cause.text, cause.position, label)
        for frame in reversed(self.frames):
            if outcome.leaving.kind in frame.kinds:
                frame.pending.append((outcome, len(self.emitted), gap))
                return

    def settle(self, frame: CallFrame, kinds: tuple[str, ...] = ()) -> None:
        """Join the ways that left with the one that went on, or assume that it went on to set up queues."""
        kept = []
        for outcome, length, gap in frame.pending:
            assert outcome.leaving is not None
            if kinds and outcome.leaving.kind not in kinds:
                kept.append((outcome, length, gap))
            elif any(command.counts for command in self.emitted[length:]):
                self._assume(gap)
            else:
                cause = outcome.state.cause or gap
                self._merge(outcome.state, Gap(UNKNOWN, gap.text, gap.position, self.key_of(gap.text)))
                if self.state.status is None and self.state.cause is None:
                    self.state.cause = cause
        frame.pending = kept

    def _assume(self, gap: Gap) -> None:
        assumed = Assumed(self.line_of(gap.position), gap.text, gap.key)
        if assumed not in self.assumed:
            self.assumed.append(assumed)

    def refuse(self, gap: Gap) -> None:
        """Raise the error of a value that nobody knows."""
        if gap.kind == UNSET:
            name = gap.key
            if name.isdigit():
                expected = "the script's arguments: dragstrip tc-import FILE ARGUMENTS"
            else:
                expected = f"a variable that a line before sets, such as {name}=eth0, or --set {name}=VALUE"
            raise RefusalError(self.position, gap.text, expected)
        where = f" (line {gap.position.line})" if gap.position != self.position else ""
        raise RefusalError(
            self.position, gap.origin, f"a value that the script contains, or {self.remedy(gap)}{where}"
        )

    def line_of(self, position: Position) -> int:
        """Return a place's line in the script itself."""
        return position.line if position.source is None else self.main_line
