"""Bind the arguments of a call to the signature of a file's function, and make what its hints ask for from the JSON.

A parameter that can only be given by position is, `*items` takes the list `items`, `**others` what no parameter takes.
"""

from __future__ import annotations

from toolcrib.values import ConversionError
from toolcrib.values.hint_values import HintConverter, UnknownHintError, UnreadableHintError, or_none

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import CodeType
    from typing import Any

PROJECT = "project_path"
# The second parameter of `execute(params, …)`, where it has a default and so may mean something else.
PROJECTS = frozenset({PROJECT, "project", "project_dir", "project_root", "workspace", "workspace_path", "root"})
_TAKES_VARIABLE, _TAKES_KEYWORDS = 0x04, 0x08
_MAX_WRAPPERS = 20


class ArgumentsError(Exception):
    """Arguments that do not fit the signature or its hints."""


class LoadedModule:
    """A loaded module, and the bytes that it was loaded from."""

    def __init__(self, module: Any, code: bytes) -> None:
        self.module = module
        self.code = code


class Signature:
    """The parameters of a function, read off its code: importing inspect would take longer than most calls."""

    def __init__(self, function: Any, entry: str, path: str) -> None:
        self.name = entry
        inner = find_definition(function, entry, path)
        self.is_known = inner is not None
        code: CodeType | None = getattr(inner, "__code__", None)
        names = code.co_varnames if code is not None else ()
        count = code.co_argcount if code is not None else 0
        total = count + (code.co_kwonlyargcount if code is not None else 0)
        skipped = 1 if inner is not None and hasattr(function, "__self__") and not isinstance(function, type) else 0
        flags = code.co_flags if code is not None else 0
        self.positional = names[skipped:count]
        self.positional_only = names[skipped : code.co_posonlyargcount] if code is not None else ()
        self.keyword_only = names[count:total]
        rest = iter(names[total:])
        self.variable = next(rest) if flags & _TAKES_VARIABLE else ""
        self.keywords = next(rest) if flags & _TAKES_KEYWORDS else ""
        defaults = getattr(inner, "__defaults__", None) or ()
        self.defaults: dict[str, object] = dict(
            zip(self.positional[len(self.positional) - len(defaults) :], defaults, strict=False)
        )
        self.defaults |= getattr(inner, "__kwdefaults__", None) or {}
        self.hints = _annotations(inner)

    def demanded(self) -> Iterator[str]:
        """The parameters without a default."""
        return (name for name in (*self.positional, *self.keyword_only) if name not in self.defaults)


def find_definition(function: Any, entry: str, path: str) -> Any:
    """The function as the file defines it, behind the wrappers of its decorators; None for what has no code."""
    waiting = [function]
    for _ in range(_MAX_WRAPPERS):
        if not waiting:
            break
        known = waiting.pop(0)
        code = getattr(known, "__code__", None)
        if code is not None and code.co_name == entry and code.co_filename == path:
            return getattr(known, "__func__", known)
        if hasattr(known, "__wrapped__"):
            waiting.append(known.__wrapped__)
        cells = getattr(known, "__closure__", None) or ()
        waiting += [content for content in map(_content, cells) if callable(content)]
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    function = getattr(function, "__func__", function)
    return function if hasattr(function, "__code__") else None


def call_by_name(
    function: Callable[..., object],
    arguments: Mapping[str, object],
    source: LoadedModule,
    job: Mapping[str, Any],
    given: Mapping[str, object] | None = None,
) -> object:
    """Call the function with the arguments by their names; those that are `given` are objects already."""
    signature = Signature(function, job["entry"], job["path"])
    if not signature.is_known:
        return function(**arguments, **(given or {}))
    values = dict(arguments)
    if PROJECT not in values and PROJECT in (*signature.positional, *signature.keyword_only):
        values[PROJECT] = job["project"]
    given = {**_field_defaults(signature, {**values, **(given or {})}), **(given or {})}
    _refuse_others(signature, {**values, **given})
    hints = Hints(signature, source)
    values = {name: hints.convert(name, value) for name, value in values.items()}
    positional, values = _by_position(signature, {**values, **given})
    return function(*positional, **values)


def call_with_params(
    function: Callable[..., object], arguments: object, source: LoadedModule, job: Mapping[str, Any], *others: object
) -> object:
    """Call the function with all arguments as its first one; a second takes the project, or what `others` give."""
    signature = Signature(function, job["entry"], job["path"])
    if not signature.is_known:
        return function(arguments, *others)
    if signature.positional:
        arguments = Hints(signature, source).convert(signature.positional[0], arguments)
    if others:
        return function(arguments, *others)
    second = signature.positional[1:2]
    if second and (second[0] not in signature.defaults or second[0] in PROJECTS):
        return function(arguments, job["project"])
    named = {name: job["project"] for name in signature.keyword_only if name in PROJECTS}
    return function(arguments, **named)


class Hints:
    """Converts arguments by the hints of a signature."""

    def __init__(self, signature: Signature, source: LoadedModule) -> None:
        self._signature = signature
        self._source = source
        self._names: dict[str, object] = vars(source.module)

    def convert(self, name: str, value: object) -> object:
        """The object that the parameter asks for."""
        signature = self._signature
        is_known = name in signature.positional or name in signature.keyword_only or name == signature.variable
        hint = signature.hints.get(name if is_known else signature.keywords)
        if hint is None and "None" not in signature.hints:
            return _list(name, value) if is_known and name == signature.variable else value
        try:
            make = self._maker(hint)
        except UnknownHintError:
            return value  # as the reader of the file warned
        except UnreadableHintError as problem:
            if isinstance(hint, type) and _is_instance(value, hint):
                return value
            raise ArgumentsError(f"{name}: {problem}") from None
        if signature.defaults.get(name, ...) is None:
            make = or_none(make)
        try:
            if is_known and name == signature.variable:
                return [value if make is None else make(value) for value in _list(name, value)]
            return value if make is None else make(value)
        except ConversionError as problem:
            raise ArgumentsError(str(problem.at(name))) from None
        except (ValueError, TypeError, KeyError, OverflowError, ArithmeticError) as problem:
            raise ArgumentsError(f"{name}: {problem}") from None

    def _maker(self, hint: Any) -> Callable[[Any], object] | None:
        try:
            return HintConverter(checks=True, names=self._names, evaluate=_evaluate).read(hint)
        except UnknownHintError:
            self._names = {**_imports_for_type_checkers(self._source), **self._names}
            return HintConverter(checks=True, names=self._names, evaluate=_evaluate).read(hint)


def _is_instance(value: object, kind: type) -> bool:
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol that only type checkers can tell
        return False


def _evaluate(text: str, names: dict[str, object]) -> object:
    return eval(text, names)  # noqa: S307 - a hint of the file, in the process that runs it


def _annotations(function: Any) -> dict[str, Any]:
    try:
        return dict(getattr(function, "__annotations__", None) or {})
    except Exception:  # noqa: BLE001 - a border to foreign code: from Python 3.14 on hints are evaluated when they are read
        return {}


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is still empty
        return None


def _list(name: str, value: object) -> list[object]:
    if isinstance(value, list):
        return value
    raise ArgumentsError(f"{name}: {value!r:.80} is not a list")


def _field_defaults(signature: Signature, values: Mapping[str, object]) -> dict[str, object]:
    """What `limit: int = Field(default=10)` means where the argument is not given: frameworks read it so."""
    found: dict[str, object] = {}
    for name, default in signature.defaults.items():
        if name in values or type(default).__name__ != "FieldInfo" or not hasattr(default, "get_default"):
            continue
        value = default.get_default(call_default_factory=True)
        if type(value).__name__ == "PydanticUndefinedType":
            raise ArgumentsError(f"{signature.name} needs {name}, which the call does not give")
        found[name] = value
    return found


def _refuse_others(signature: Signature, values: Mapping[str, object]) -> None:
    known = {*signature.positional, *signature.keyword_only, signature.variable}
    unknown = [name for name in values if name not in known]
    if unknown and not signature.keywords:
        takes = ", ".join(sorted(known - {""})) or "nothing"
        raise ArgumentsError(
            f"{signature.name} does not take {', '.join(unknown)}; it takes {takes}; add it to the function"
        )
    missing = [name for name in signature.demanded() if name not in values]
    if missing:
        raise ArgumentsError(
            f"{signature.name} needs {', '.join(missing)}, which the call does not give; give it a default"
        )


def _by_position(signature: Signature, values: dict[str, object]) -> tuple[list[object], dict[str, object]]:
    """What is given by position, and the rest."""
    rest = dict(values)
    variable: Any = rest.pop(signature.variable, []) if signature.variable else []
    names = signature.positional if variable else signature.positional_only
    last = max((place for place, name in enumerate(names) if variable or name in rest), default=-1)
    positional = [rest.pop(name) if name in rest else signature.defaults[name] for name in names[: last + 1]]
    return [*positional, *variable], rest


def _imports_for_type_checkers(source: LoadedModule) -> dict[str, object]:
    """The names that a file imports for type checkers alone, imported now: a hint needs them."""
    import ast

    names: dict[str, object] = {}
    tree = ast.parse(source.code)
    blocks = [statement for statement in tree.body if isinstance(statement, ast.If)]
    for block in blocks:
        if not ast.unparse(block.test).endswith("TYPE_CHECKING"):
            continue
        for statement in block.body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                space: dict[str, object] = {}
                try:
                    exec(compile(ast.Module([statement], []), source.module.__file__, "exec"), space)  # noqa: S102 - an import of the file, in the process that runs it
                except Exception:  # noqa: BLE001, S112 - it may name what is not installed
                    continue
                names |= {name: value for name, value in space.items() if not name.startswith("__")}
    return names
