"""Ask every rule about a call; the strictest verdict counts, and a rule that cannot decide denies."""

from __future__ import annotations

import functools
import logging
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.core.plugins import Plugins
from toolcrib.core.resources import Resources
from toolcrib.infra.settings import load_settings
from toolcrib.lib.schema_structure import holds_text
from toolcrib.model.errors import Cure, Kind
from toolcrib.model.result import ALLOW, Decision, Verdict, deny
from toolcrib.model.tool import Chained, Http, Sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolcrib.model.call import Call
    from toolcrib.model.errors import ToolError
    from toolcrib.model.protocols import Rule
    from toolcrib.model.tool import Tool

    Screen = Callable[[Tool | None, Call], bool]

STRICTNESS = {Decision.ALLOW: 0, Decision.CONFIRM: 1, Decision.DENY: 2}
# A cache for the rules that judge the same call, so that each need not parse its texts again.
SHARED: ContextVar[dict[tuple[int, int], object] | None] = ContextVar("shared", default=None)
log = logging.getLogger(__name__)


class AuthRule:
    """Denies every tool but these; `get_time` and `get-time` are the same name."""

    def __init__(
        self, allowed_tools: Iterable[str], name: str = "auth", *, where: str = "a rule of the host program"
    ) -> None:
        self.allowed = frozenset(_slug(tool) for tool in allowed_tools)
        self.name = name
        self.where = where

    def concerns(self, tool: Tool) -> bool:
        """Whether the tool is none of the named ones."""
        return tool.slug not in self.allowed

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Judge the name of the tool; for an unknown one, the name in the call."""
        slug = _slug(call.name) if tool is None else tool.slug
        if slug in self.allowed:
            return ALLOW
        return deny(
            f"rule {self.name!r} does not allow the tool {call.name[:80]!r}",
            rule=self.name,
            where=self.where,
            cure=Cure("add its name to allowed_tools", "ask the operator to allow it"),
        )


def _slug(name: str) -> str:
    return name.replace("_", "-")


class TooMuchToReadError(Exception):
    """The arguments are too large for a rule to judge in reasonable time."""


def strictest_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The strictest verdict: deny before confirm before allow, and the first of equally strict ones."""
    return max(verdicts, key=lambda verdict: STRICTNESS[verdict.decision], default=ALLOW)


def unreadable(place: str, error: ToolError, *, rule: str, where: str) -> Verdict:
    """Deny a command that cannot be parsed, with the message of the parser."""
    return deny(f"rule {rule!r}: {place}: {error.message}", rule=rule, where=where, details={"argument": place})


def too_much(rule: str, where: str) -> Verdict:
    """Deny a call with more text than a rule can read."""
    return deny(
        f"rule {rule!r}: the arguments hold more strings than can be judged",
        rule=rule,
        where=where,
        cure="send fewer of them in one call",
        kind=Kind.LIMIT_EXCEEDED,
    )


def default_rules(workspace: Path) -> list[Rule]:
    """The rules that are enabled by default."""
    plugins = Plugins()
    settings = load_settings(None, {}, plugins.tables(), {"workspace": {"folder": workspace}})
    return Resources(settings, {}, plugins=plugins).rules()


class TextRule:
    """A rule about commands and paths in texts, created when a call holds one, because it loads the parser of shell commands.

    `screen` gives the function that says that a call holds none.
    """

    def __init__(self, name: str, make: Callable[[], Rule], screen: Callable[[], Screen]) -> None:
        self.name = name
        self._make = functools.cache(make)
        self._screen = screen

    def concerns(self, tool: Tool) -> bool:
        """Whether the tool is a command itself, or a call of it can hold a command or a path."""
        if isinstance(tool.run, Http | Sql):
            return False  # its arguments are data for a server or a database, not commands or files of this machine
        return holds_text(tool.parameters) or (isinstance(tool.run, Chained) and tool.run.is_command_line)

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Ask the rule, unless there is nothing in the call that it judges."""
        return ALLOW if self._screen()(tool, call) else self._make()(tool, call)


def strictest(rules: Iterable[Rule], tool: Tool | None, call: Call) -> Verdict:
    """Ask all of the rules; the strictest verdict counts, and the first of equally strict ones."""
    before = SHARED.set({})
    try:
        return strictest_of([_ask(rule, tool, call) for rule in rules])
    finally:
        SHARED.reset(before)


class RuleEngine:
    """Holds the rules; `rules` replaces the default ones, whose relative paths start at `workspace`.

    `when_changed` registers a callback that runs whenever a rule is added.
    """

    def __init__(self, rules: Iterable[Rule] | None = None, *, workspace: Path | None = None) -> None:
        self._defaults = default_rules(workspace or Path.cwd()) if rules is None else []
        self._added = [] if rules is None else list(rules)
        self._listeners: list[Callable[[], None]] = []

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in the order in which they are asked."""
        return (*self._defaults, *self._added)

    @property
    def added(self) -> tuple[Rule, ...]:
        """The rules that were added; without the default ones."""
        return tuple(self._added)

    def add_rule(self, rule: Rule) -> None:
        """Add a rule."""
        self._added.append(rule)
        for changed in self._listeners:
            changed()

    def when_changed(self, changed: Callable[[], None]) -> None:
        """Call this whenever a rule is added."""
        self._listeners.append(changed)

    def concerning(self, tool: Tool) -> tuple[Rule, ...]:
        """The rules that could object to a call of this tool."""
        return tuple(rule for rule in self.rules if _concerns(rule, tool))

    def judge(self, tool: Tool | None, call: Call) -> Verdict:
        """The strictest verdict of the rules that concern the tool; all of them judge an unknown one."""
        return strictest(self.rules if tool is None else self.concerning(tool), tool, call)


def _concerns(rule: Rule, tool: Tool) -> bool:
    try:
        return rule.concerns(tool)
    except Exception:
        log.exception("rule failed; it is asked about every call", extra={"rule": rule.name, "tool": tool.name})
        return True


def _ask(rule: Rule, tool: Tool | None, call: Call) -> Verdict:
    """Ask one rule; a rule that fails has not decided, so the call is refused."""
    try:
        verdict: object = rule(tool, call)  # a plugin may return anything
    except TooMuchToReadError:
        return too_much(rule.name, type(rule).__module__)
    except Exception:
        log.exception("rule failed; the call is refused", extra={"rule": rule.name, "tool": call.name})
        return _undecided(rule, "failed")
    return verdict if isinstance(verdict, Verdict) else _undecided(rule, "gave no verdict")


def _undecided(rule: Rule, what: str) -> Verdict:
    return deny(
        f"rule {rule.name!r} {what}, so the call is refused",
        rule=rule.name,
        where=type(rule).__module__,
        cure=Cure("see the log, and fix or remove the rule"),
    )
