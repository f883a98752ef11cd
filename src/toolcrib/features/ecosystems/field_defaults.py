"""Read `limit: int = Field(default=10, ge=1)` as frameworks do: as a default of 10 and a bound."""

from __future__ import annotations

import ast
from copy import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.features.ecosystems.file_names import FileNames
    from toolcrib.lib.python_source import AnyFunction

HOMES = ("pydantic.", "pydantic_core.")


def without_field_defaults(function: AnyFunction, names: FileNames) -> AnyFunction:
    """The function with the calls of `Field` moved from its defaults to its hints; itself if there are none."""
    arguments = function.args
    missing: list[ast.expr | None] = [None] * (len(arguments.args) - len(arguments.defaults))
    # The defaults of positional-only parameters come first in the list.
    defaults = [*missing, *arguments.defaults[max(0, len(arguments.defaults) - len(arguments.args)) :]]
    pairs = [*zip(arguments.args, defaults, strict=True)]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    if not any(_is_field(default, names) for _, default in pairs):
        return function
    read = [_read(argument, default, names) for argument, default in pairs]
    changed = copy(arguments)
    # As keyword-only, because a parameter without a default may follow one with a default.
    changed.defaults = arguments.defaults[: max(0, len(arguments.defaults) - len(arguments.args))]
    changed.args, changed.kwonlyargs = [], [argument for argument, _ in read]
    changed.kw_defaults = [default for _, default in read]
    made = copy(function)
    made.args = changed
    return made


def _is_field(default: ast.expr | None, names: FileNames) -> bool:
    if not isinstance(default, ast.Call):
        return False
    name = names.full_name(default.func)
    return name.startswith(HOMES) and name.endswith(".Field")


def _read(argument: ast.arg, default: ast.expr | None, names: FileNames) -> tuple[ast.arg, ast.expr | None]:
    if not _is_field(default, names) or not isinstance(default, ast.Call):
        return argument, default
    said = {word.arg: word.value for word in default.keywords if word.arg}
    value = said.get("default") or (default.args[0] if default.args else None)
    if isinstance(value, ast.Constant) and value.value is Ellipsis:
        value = None
    if value is None and "default_factory" in said:
        value = default  # only known at run time, so no schema contains it
    hint = argument.annotation or ast.Name("Any", ast.Load())
    noted = ast.Subscript(ast.Name("Annotated", ast.Load()), ast.Tuple([hint, default], ast.Load()), ast.Load())
    changed = copy(argument)
    changed.annotation = ast.fix_missing_locations(ast.copy_location(noted, argument))
    return changed, value
