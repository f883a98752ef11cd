"""What a tool returned, checked against what it promised and bounded in size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import orjson

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure import schema

if TYPE_CHECKING:
    from toolcrib.pipeline.kept import KeptResults
    from toolcrib.pipeline.plan import Plan

STRICT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
HEAD_LETTERS = 2_000
INT64 = 2**63


def settle(plan: Plan, value: object, limit: int) -> object:
    """The value, once it is what the output schema promises; a `Whole` if it is longer than `limit` bytes."""
    try:
        if plan.output is not None and not plan.output.is_valid(value):
            raise _broken_promise(plan, schema.explain_problems(plan.output, value, plan.tool.output_schema))
    except (ValueError, TypeError, RecursionError) as problem:
        raise _broken_promise(plan, [str(problem)]) from problem
    kind = type(value)
    if kind is int and -INT64 <= value < INT64:  # type: ignore[operator]  # it is an int
        return value
    if kind is str and len(value) <= limit and value.isascii():  # type: ignore[arg-type, attr-defined]  # it is a str
        return value
    return None if value is None else bound(plan.tool.name, value, limit)


def _broken_promise(plan: Plan, problems: list[str]) -> ToolError:
    return ToolError(
        Kind.OUTPUT_INVALID,
        f"{plan.tool.name} returned something else than it promises: {'; '.join(problems)}",
        partial_side_effects=True,
        details={"problems": problems},
    )


class Whole(str):
    """The whole text of a value that is too long to be handed over."""

    __slots__ = ()


def bound(name: str, value: object, limit: int) -> object:
    """The value as plain JSON, or a `Whole` if that is longer than `limit` bytes."""
    try:
        value, raw = _encode(value)
    except (TypeError, ValueError, RecursionError) as problem:
        message = f"{name} returned a {type(value).__name__} that is not JSON: {problem}"
        raise ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True) from problem
    if len(raw) <= limit:
        return value
    return Whole(value if isinstance(value, str) else raw.decode())


def keep_aside(text: str, kept: KeptResults, caller: str, meta: dict[str, object]) -> str:
    """Keep a text that is too long, and answer with its head; `meta` says how to read the rest."""
    head = text[:HEAD_LETTERS]
    meta["kept"] = {
        "handle": kept.keep(text, caller),
        "bytes": len(text.encode()),
        "letters": len(text),
        "shown": len(head),
    }
    return head


def _encode(value: object) -> tuple[object, bytes]:
    try:
        raw = orjson.dumps(value, option=STRICT)
    except TypeError:
        raw = orjson.dumps(value, default=_plain)
        value = orjson.loads(raw)
    # orjson writes NaN and infinity as null; only a text with a null in it can hide one.
    if b"null" in raw:
        _refuse_nan(value)
    return value, raw


def _plain(value: object) -> object:
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if hasattr(value, "__fspath__"):
        return str(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"it holds a {type(value).__name__}")


def _refuse_nan(value: object) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} cannot be written as JSON; return null or a text")
    if isinstance(value, dict):
        for part in value.values():
            _refuse_nan(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            _refuse_nan(part)
