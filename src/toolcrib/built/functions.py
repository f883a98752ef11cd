"""Functions that call a built tool: checked, allowed, sandboxed and written down like every other call of it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from toolcrib.built.answers import to_answer
from toolcrib.built.rooms import ROOMS, Wish, project_of
from toolcrib.dialects.built import DESCRIPTION_FILE, load_package, read_file
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.dialects.built import Package
    from toolcrib.model.result import Result

HINTS = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}


def open_package(file: str) -> Callable[..., Any]:
    """The function of the package whose `__init__.py` this is. It takes keywords; `function.call_async` does the same async.

    Raises ImportError if the package is not what was proved, or if the settings around it are not to be trusted; a call that
    fails raises ToolError, with what was achieved in its `value`.
    """
    folder = Path(file).absolute().parent
    try:
        package = load_package(folder, read_file(folder / DESCRIPTION_FILE))
        project = project_of(folder.parent)
    except ToolError as problem:
        raise ImportError(problem.message, name=folder.name, path=file) from None
    return _function(package, folder.parent, project)


def _function(package: Package, tools: Path, project: Path) -> Callable[..., Any]:
    address = package.address(tools.name)
    signature = signature_of(package)

    def refuse_positional(given: tuple[object, ...]) -> None:
        if given:
            raise TypeError(f"{package.function}() takes its arguments by name: {package.function}{signature}")

    def function(*positional: object, **arguments: object) -> Any:
        refuse_positional(positional)
        room = ROOMS.of(project)
        if room.is_here:
            raise RuntimeError(
                f"this code runs where the call would run; write: await {package.function}.call_async(…)"
            )
        wish = Wish()
        try:
            result = room.call(address, arguments, wish).result()
        except BaseException:
            # Whoever was interrupted does not want it any more.
            room.call_off(wish)
            raise
        return _value(result, package)

    async def call_async(*positional: object, **arguments: object) -> Any:
        """Wait for the call without holding up the loop."""
        import asyncio

        refuse_positional(positional)
        future = ROOMS.of(project).call(address, arguments, Wish())
        return _value(await asyncio.wrap_future(future), package)

    _introduce(function, package, signature, f"{tools.name}.{package.name}")
    vars(function)["call_async"] = call_async
    return function


def signature_of(package: Package) -> inspect.Signature:
    """The keywords that the function takes; `...` stands for one that may be left out and has no default."""
    properties = package.parameters.get("properties")
    required = package.parameters.get("required")
    named: Mapping[str, object] = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else ()
    return inspect.Signature([_parameter(name, schema, is_needed=name in needed) for name, schema in named.items()])


def _parameter(name: str, schema: object, *, is_needed: bool) -> inspect.Parameter:
    facts = schema if isinstance(schema, dict) else {}
    absent = inspect.Parameter.empty if is_needed else ...
    hint = HINTS.get(facts.get("type", ""), Any) if isinstance(facts.get("type", ""), str) else Any
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=facts.get("default", absent), annotation=hint
    )


def _introduce(function: Callable[..., Any], package: Package, signature: inspect.Signature, module: str) -> None:
    """Give the function the name, the words and the keywords of the one that it calls."""
    facts = {"__name__": package.function, "__qualname__": package.function, "__module__": module}
    for name, fact in {**facts, "__doc__": package.description, "__signature__": signature}.items():
        setattr(function, name, fact)


def _value(result: Result, package: Package) -> Any:
    if result.error is not None:
        _raise(result.error, to_answer(result.value, package.output_schema))
    return to_answer(result.value, package.output_schema)


def _raise(error: ToolError, value: object) -> NoReturn:
    """Raise the error with what was achieved, as the caller reads it."""
    raise ToolError(
        error.kind,
        error.message,
        retryable=error.retryable,
        partial_side_effects=error.partial_side_effects,
        details=error.details,
        value=value,
    )
