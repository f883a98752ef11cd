"""Convert between JSON and Python values, for the host and for the sandbox; this module serialises Python objects as JSON.

Every launcher of the sandbox imports it, so it imports only modules that are loaded anyway. An object of a module that was
never imported cannot occur, so classes of other libraries are looked up in `sys.modules`.
"""

from __future__ import annotations

import enum
import math
import os
import sys
import types
from _collections_abc import (  # the module behind collections.abc, which is always loaded
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    Set,
    ValuesView,
)

TYPE_CHECKING = False  # importing typing would take a fifth of the launcher's start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

# The limit of items that are read from an iterator, which may be infinite.
MAX_ITEMS = 100_000
SHOWN = 80
MAX_STEPS = 12
SCALARS = (str, int, float, bool, type(None))
RETURN_CURE = "return plain values, a dict, a list or a dataclass"


class ConversionError(ValueError):
    """A value that cannot be converted; the message begins with its path."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self._steps: list[str] = []

    def at(self, step: str | int) -> ConversionError:
        """Add the step of an outer level to the path."""
        self._steps.append(f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{step!r:.{SHOWN}}]")
        return self

    def __str__(self) -> str:
        path = "".join(reversed(self._steps[-MAX_STEPS:])).removeprefix(".")
        if len(self._steps) > MAX_STEPS:
            path += "…"
        return f"{path}: {self.args[0]}" if path else str(self.args[0])


def to_json(value: object) -> object:
    """Convert a value to JSON; raises ConversionError with the path and the type of a part that has no JSON form."""
    kind = type(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is str:
        return _text(value)  # type: ignore[arg-type]  # it is a str
    if kind is float:
        return _finite(value)  # type: ignore[arg-type]  # it is a float
    try:
        if kind is dict:
            return _mapping(value)  # type: ignore[arg-type]  # it is a dict
        if kind is list or kind is tuple:
            return _items(value)  # type: ignore[arg-type]  # it is one of the two
        return _convert(value)
    except RecursionError:
        raise ConversionError(
            f"a {kind.__name__} that contains itself, or is nested too deeply, has no JSON form"
        ) from None


def joins_text(output_schema: Mapping[str, object] | None) -> bool:
    """Whether the items that a tool yields are joined to one string, because its output schema is a string."""
    return output_schema is not None and output_schema.get("type") == "string"


def enum_value(member: enum.Enum) -> object:
    """The JSON of a member: its value if the values of all members are JSON, else its name."""
    return member.value if is_written_by_value(type(member)) else member.name


def is_written_by_value(kind: type[enum.Enum]) -> bool:
    """Whether every value of the enum is JSON."""
    return all(type(member.value) in SCALARS for member in kind)


def _convert(value: Any) -> object:
    """Convert a value that is not exactly of a JSON type, by the first converter that matches."""
    if isinstance(value, enum.Enum):
        return to_json(enum_value(value))
    for kind, convert in _CONVERTERS:
        if isinstance(value, kind):
            return convert(value)
    for module, convert_loaded in _OPTIONAL:
        if module in sys.modules:
            made = convert_loaded(value, sys.modules[module])
            if made is not _NOT_MINE:
                return made
    if isinstance(value, Iterator):
        return _bounded(value)
    return _record(value)


_NOT_MINE = object()


def _refuse(value: object) -> NoReturn:
    raise ConversionError(f"a {type(value).__qualname__} has no JSON form; {RETURN_CURE}")


def _text(value: str) -> str:
    text = str.__str__(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConversionError("a str with a lone surrogate has no JSON form; decode it with errors='replace'") from None
    return text


def _finite(value: float) -> float:
    if math.isfinite(value):
        return float(value)
    raise ConversionError(f"a {type(value).__name__} of {float(value)} has no JSON form; return None or a text")


def _items(values: Iterable[object]) -> list[object]:
    made: list[object] = []
    for value in values:
        try:
            made.append(to_json(value))
        except ConversionError as problem:
            raise problem.at(len(made)) from None
    return made


def _bounded(values: Iterable[object]) -> list[object]:
    """The items of an iterable that may be infinite, up to MAX_ITEMS."""
    import itertools

    items = list(itertools.islice(values, MAX_ITEMS + 1))
    if len(items) > MAX_ITEMS:
        raise ConversionError(f"a {type(values).__name__} of more than {MAX_ITEMS:,} items; return fewer")
    return _items(items)


def _mapping(value: Mapping[object, object]) -> dict[str, object]:
    made: dict[str, object] = {}
    for key, inner in value.items():
        name = key if type(key) is str and key.isascii() else _key(key)
        if name in made:
            raise ConversionError(f"two keys of a {type(value).__name__} are both written {name!r:.{SHOWN}}")
        try:
            made[name] = to_json(inner)
        except ConversionError as problem:
            raise problem.at(name) from None
    return made


_WORDS: dict[object, str] = {True: "true", False: "false", None: "null"}


def _key(key: object) -> str:
    """Convert a key to a string, as JSON requires."""
    if isinstance(key, tuple):
        raise ConversionError("a tuple as a key has no JSON form; use a text")
    plain = to_json(key)
    if isinstance(plain, str):
        return plain
    if isinstance(plain, (list, dict)):
        raise ConversionError(f"a {type(key).__qualname__} as a key has no JSON form; use a text")
    return _WORDS[plain] if plain is None or type(plain) is bool else str(plain)


def _tuple(value: tuple[object, ...]) -> object:
    names = getattr(value, "_fields", None)
    return _items(value) if names is None else _attributes(value, names)


def _set(value: Set[object]) -> list[object]:
    items = _items(value)
    # A set has no order; sorting makes the result deterministic.
    try:
        return sorted(items)  # type: ignore[type-var]  # incomparable items are sorted by their repr
    except TypeError:
        return sorted(items, key=repr)


def _base64(value: bytes | bytearray | memoryview) -> str:
    import binascii

    return binascii.b2a_base64(value, newline=False).decode("ascii")


# Subclasses too: a Counter is a dict, numpy's float64 is a float.
_CONVERTERS: tuple[tuple[Any, Callable[[Any], object]], ...] = (
    (str, _text),
    (float, _finite),
    (int, int),
    (Mapping, _mapping),
    (tuple, _tuple),
    (list, _items),
    ((KeysView, ItemsView, ValuesView), _items),
    (Set, _set),
    ((bytes, bytearray, memoryview), _base64),
    (os.PathLike, lambda path: to_json(os.fspath(path))),
    ((BaseException, type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType), _refuse),
    (Sequence, _bounded),
)


def _from_datetime(value: Any, module: Any) -> object:
    if isinstance(value, (module.date, module.time)):
        if value != value:  # noqa: PLR0124 - pandas' NaT is a datetime that differs from itself
            _refuse(value)
        return value.isoformat()
    return value.total_seconds() if isinstance(value, module.timedelta) else _NOT_MINE


def _from_decimal(value: Any, module: Any) -> object:
    if not isinstance(value, module.Decimal):
        return _NOT_MINE
    if not value.is_finite():
        raise ConversionError(f"a Decimal of {value} has no JSON form; return None or a text")
    return format(value, "f")


def _from_uuid(value: Any, module: Any) -> object:
    return str(value) if isinstance(value, module.UUID) else _NOT_MINE


def _from_collections(value: Any, module: Any) -> object:
    return _items(value) if isinstance(value, module.deque) else _NOT_MINE


def _from_ipaddress(value: Any, module: Any) -> object:
    return str(value) if isinstance(value, (module._IPAddressBase,)) else _NOT_MINE  # noqa: SLF001 - the base of all six


def _from_io(value: Any, module: Any) -> object:
    return _refuse(value) if isinstance(value, module.IOBase) else _NOT_MINE


def _from_sqlite(value: Any, module: Any) -> object:
    return _mapping(dict(value)) if isinstance(value, module.Row) else _NOT_MINE


def _from_numpy(value: Any, module: Any) -> object:
    if not isinstance(value, (module.generic, module.ndarray)):
        return _NOT_MINE
    if value.dtype.kind in "mM":
        # Nanoseconds, numpy's default unit, would become plain integers.
        if module.isnat(value).any():
            _refuse(value.dtype.type("NaT"))
        value = value.astype(f"{value.dtype.kind}8[us]")
    plain = value.tolist()
    if type(plain) is type(value):
        _refuse(value)
    return to_json(plain)


def _from_pandas(value: Any, module: Any) -> object:
    if not isinstance(value, (module.DataFrame, module.Series, module.Index, module.api.extensions.ExtensionArray)):
        return _NOT_MINE
    if not isinstance(value, (module.DataFrame, module.Series)):
        return _items(list(value))
    index = value.index
    # Row numbers are left out; any other index is data, which must not be lost.
    is_numbered = index.nlevels == 1 and index.name is None and module.api.types.is_integer_dtype(index.dtype)
    if isinstance(value, module.Series):
        return _items(value.tolist()) if is_numbered else _mapping(value.to_dict())
    return _items((value if is_numbered else value.reset_index()).to_dict("records"))


_OPTIONAL: tuple[tuple[str, Callable[[Any, Any], object]], ...] = (
    ("datetime", _from_datetime),
    ("decimal", _from_decimal),
    ("uuid", _from_uuid),
    ("collections", _from_collections),
    ("io", _from_io),
    ("ipaddress", _from_ipaddress),
    ("sqlite3", _from_sqlite),
    ("pandas", _from_pandas),
    ("numpy", _from_numpy),
)


def _record(value: Any) -> object:
    """An object as the mapping of its fields, or of its public attributes."""
    kind = type(value)
    if hasattr(kind, "model_dump"):  # pydantic
        return to_json(value.model_dump(mode="json", by_alias=True))
    if "pydantic_core" in sys.modules and kind.__module__.partition(".")[0] in {"pydantic", "pydantic_core"}:
        core: Any = sys.modules["pydantic_core"]  # HttpUrl and the like
        return to_json(core.to_jsonable_python(value))
    if hasattr(kind, "__fields__") and hasattr(kind, "dict"):  # pydantic 1
        return to_json(value.dict(by_alias=True))
    for mark in ("__attrs_attrs__", "__struct_fields__"):  # attrs, msgspec
        if hasattr(kind, mark):
            return _attributes(value, [getattr(field, "name", field) for field in getattr(kind, mark)])
    if hasattr(kind, "__dataclass_fields__"):
        import dataclasses

        return _attributes(value, [field.name for field in dataclasses.fields(value) if is_written(field)])
    if kind.__module__ == "builtins" or callable(value):
        _refuse(value)
    slots = [name for base in kind.__mro__ for name in _slots(base)]
    names = [name for name in (*slots, *getattr(value, "__dict__", ())) if not name.startswith("_")]
    if not names:
        _refuse(value)
    return _attributes(value, [name for name in dict.fromkeys(names) if hasattr(value, name)])


def is_written(field: Any) -> bool:
    """Whether a field of a dataclass is part of its JSON; a private one is only if the constructor takes it."""
    return field.init or not field.name.startswith("_")


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _attributes(value: object, names: Iterable[str]) -> dict[str, object]:
    made: dict[str, object] = {}
    for name in names:
        try:
            made[name] = to_json(getattr(value, name))
        except ConversionError as problem:
            raise problem.at(name) from None
    return made
