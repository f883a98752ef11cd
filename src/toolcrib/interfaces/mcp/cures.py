"""Say in an error what a client of this protocol can do about it: a model runs no command, it searches, or asks the operator."""

from __future__ import annotations

import re

from toolcrib.model.errors import ToolError

# What a refusal tells a person at a terminal, and what a model does instead.
_INSTEAD = (
    (
        r"have another person approve it \(crib approvals list\), then make the same call again",
        "ask the operator to approve it, then make the same call again",
    ),
    (r"that person runs: (crib approvals approve \S+)", r"the operator runs: \1"),
    (r"it is asked for by (\S+): crib request show \S+", r"it is asked for by \1, wait for it with watch_request"),
)
_SEARCHING = (
    (r"list the tools with: crib list", "find one with search_tools"),
    (r"see(?: its parameters with)?: crib show \S+", "read its parameters with describe_tool"),
)
_LISTING = (
    (r"list the tools with: crib list", "use one that is listed"),
    (r"see(?: its parameters with)?: crib show \S+", "its definition says what it takes"),
)
# What only the operator can do: run a command, change a setting, read the log of the server.
_OPERATOR = re.compile(
    r"(?:^|[:(`] ?|\b(?:run|or|and) )crib [a-z]|toolcrib\.toml|--grant\b|\bsee the log\b"
    r"|\b(?:catalog\.disabled|allowed_tools|forbidden_patterns|max_calls|max_turn_calls|max_turn_retrievals)\b"
)
_CLAUSE = "; "
_ASK = "ask the operator: "


def for_client(error: ToolError, *, is_searched: bool) -> ToolError:
    """The error with cures that a client can follow; `is_searched` says whether it has the tools of a large catalogue."""
    message = address(error.message, is_searched=is_searched)
    cure = error.details.get("cure")
    details = error.details
    if isinstance(cure, str):
        details = {**details, "cure": address(cure, is_searched=is_searched, is_cure=True)}
    if message == error.message and details == error.details:
        return error
    return ToolError(
        error.kind,
        message,
        retryable=error.retryable,
        partial_side_effects=error.partial_side_effects,
        details=details,
        value=error.value,
    )


def address(text: str, *, is_searched: bool, is_cure: bool = False) -> str:
    """The text with each clause that names a command turned into what a client can do; the first one is the reason."""
    first, *rest = text.split(_CLAUSE)
    clauses = [_for_client(clause, is_searched=is_searched) for clause in ((first, *rest) if is_cure else rest)]
    return _CLAUSE.join(clauses if is_cure else (first, *clauses))


def _for_client(clause: str, *, is_searched: bool) -> str:
    for pattern, instead in (*_INSTEAD, *(_SEARCHING if is_searched else _LISTING)):
        if found := re.fullmatch(pattern, clause):
            return found.expand(instead)
    return f"{_ASK}{clause}" if _OPERATOR.search(clause) and "operator" not in clause else clause
