"""What the category of a tool asks of it: two rules that must hold, and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.tool import Behaviour, SideEffects

if TYPE_CHECKING:
    from toolcrib.dialects.folder.fields import Declaration
    from toolcrib.dialects.folder.report import SchemaFile

# How long a tool that the conversation waits for may take, in milliseconds.
BUDGETS = {"voice": 800, "text": 2000}
QUICK = frozenset({Behaviour.RETRIEVAL, Behaviour.UTILITY})
CAN_WRITE = frozenset({"fs.write", "shell.execute"})


def warn_of_practices(file: SchemaFile, declared: Declaration) -> None:
    """Refuse what the category forbids, and warn of what is unusual for it."""
    if declared.behaviour is Behaviour.RETRIEVAL:
        _check_retrieval(file, declared)
    _warn_of_effects(file, declared)
    _warn_of_budget(file, declared)


def _check_retrieval(file: SchemaFile, declared: Declaration) -> None:
    if declared.idempotent is False:
        text = 'a retrieval tool must be idempotent; write "idempotent": true, or another category'
        file.refuse(("idempotent",), f"idempotent: {text}")
    if declared.side_effects is SideEffects.WRITES:
        text = 'a retrieval tool must not write; write "sideEffects": "read_only", or another category'
        file.refuse(("sideEffects",), f"sideEffects: {text}")


def _warn_of_effects(file: SchemaFile, declared: Declaration) -> None:
    effects = declared.side_effects
    if effects is None:
        return
    at = ("sideEffects",)
    if declared.behaviour is Behaviour.ACTION and effects is not SideEffects.WRITES:
        file.warn(at, f'sideEffects: an action that does not write ({effects}); write "writes", or another category')
    if declared.behaviour is Behaviour.UTILITY and effects is not SideEffects.NONE:
        file.warn(at, f'sideEffects: a utility usually has none ({effects}); write "none", or another category')
    writing = sorted(CAN_WRITE & declared.options.requires)
    if writing and effects is not SideEffects.WRITES:
        text = f'{effects}, yet the tool requires {", ".join(writing)}, which can write; write "writes"'
        file.warn(at, f"sideEffects: {text}, or require less")


def _warn_of_budget(file: SchemaFile, declared: Declaration) -> None:
    budget = declared.latency_budget_ms
    if declared.behaviour not in QUICK or budget is None:
        return
    for mode, most in BUDGETS.items():
        if mode in declared.modes and budget > most:
            text = f"{budget} ms is long for a {declared.behaviour} tool in {mode} mode; make it {most} or less"
            file.warn(("latencyBudgetMs",), f"latencyBudgetMs: {text}")
