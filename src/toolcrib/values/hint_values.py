"""Convert JSON into Python objects by type hints, for the arguments of host functions and of file tools.

Every launcher of the sandbox imports this module, so its own imports are deferred until a hint needs them.
"""

from __future__ import annotations

import enum
import sys
import types
from _collections_abc import (  # the module behind collections.abc, which is always loaded
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
    Set,
)

from toolcrib.values import SHOWN, ConversionError, enum_value, to_json

TYPE_CHECKING = False  # importing typing would take a fifth of the launcher's start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Revive = Callable[[Any], object]

MAX_HINTS = 2_000
CURE = "use a plain type, a dataclass, a TypedDict, an Enum or a pydantic model"
# The exceptions by which a constructor may reject its fields.
REFUSALS = (ValueError, TypeError, KeyError, OverflowError, ArithmeticError)
MAX_CHOICES = 20


def _expect(name: str, *kinds: type) -> Revive:
    def check(value: object) -> object:
        if type(value) in kinds:
            return value
        raise ConversionError(f"{value!r:.{SHOWN}} is not {name}")

    return check


def _check_int(value: object) -> int:
    if type(value) is int or (type(value) is float and value.is_integer()):  # JSON has only one type of number
        return int(value)
    raise ConversionError(f"{value!r:.{SHOWN}} is not an integer")


def check_list(value: object) -> list[object]:
    """Return the value if it is a list."""
    if isinstance(value, list):
        return value
    raise ConversionError(f"{value!r:.{SHOWN}} is not a list")


def check_dict(value: object) -> dict[str, object]:
    """Return the value if it is a dict."""
    if isinstance(value, dict):
        return value
    raise ConversionError(f"{value!r:.{SHOWN}} is not an object")


CHECKS: dict[object, Revive] = {
    str: _expect("text", str),
    int: _check_int,
    float: _expect("a number", float, int),
    bool: _expect("true or false", bool),
    type(None): _expect("null", type(None)),
    None: _expect("null", type(None)),
    list: check_list,
    dict: check_dict,
}

_LIMITS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "ge": ("at least {}", lambda value, bound: value >= bound),
    "gt": ("more than {}", lambda value, bound: value > bound),
    "le": ("at most {}", lambda value, bound: value <= bound),
    "lt": ("less than {}", lambda value, bound: value < bound),
    "multiple_of": ("a multiple of {}", lambda value, bound: value % bound == 0),
    "min_length": ("{} or longer", lambda value, bound: len(value) >= bound),
    "max_length": ("{} or shorter", lambda value, bound: len(value) <= bound),
}


def limits_of(note: Any) -> list[tuple[Callable[[Any], bool], str]]:
    """The limits in a piece of metadata of Annotated, such as pydantic's Field or annotated_types, each with its wording."""
    found: list[tuple[Callable[[Any], bool], str]] = []
    for name, (text, is_kept) in _LIMITS.items():
        bound = getattr(note, name, None)
        if isinstance(bound, (int, float)):
            found.append((_limit(is_kept, bound), text.format(bound)))
    for part in getattr(note, "metadata", None) or ():
        found += limits_of(part)
    return found


def _limit(is_kept: Callable[[Any, Any], bool], bound: float) -> Callable[[Any], bool]:
    def judge(value: object) -> bool:
        try:
            return is_kept(value, bound)
        except TypeError:  # a value of another member of a union, to which the limit does not apply
            return True

    return judge


NOT_THERE = object()
_ARRAYS: dict[object, Callable[[Any], object] | None] = {
    **dict.fromkeys((list, Sequence, MutableSequence, Collection, Iterable)),
    **dict.fromkeys((Iterator, Generator), iter),
    **dict.fromkeys((set, Set, MutableSet), set),
    frozenset: frozenset,
}
_OBJECTS: dict[object, Callable[[Any], object] | None] = dict.fromkeys((dict, Mapping, MutableMapping))


def array_hints() -> dict[object, Callable[[Any], object] | None]:
    """The hints of collections that are JSON arrays, each with the constructor that takes a list; None for a plain list."""
    collections = sys.modules.get("collections")
    return _ARRAYS if collections is None else {**_ARRAYS, collections.deque: collections.deque}


def object_hints() -> dict[object, Callable[[Any], object] | None]:
    """The hints of mappings that are JSON objects, each with the constructor that takes a dict; None for a plain dict."""
    collections: Any = sys.modules.get("collections")
    if collections is None:
        return _OBJECTS
    return {**_OBJECTS, collections.OrderedDict: None, collections.Counter: collections.Counter}


def maker_of(kind: Any) -> Revive | None:
    """The converter for a class that has a special JSON form, such as a date, an enum or a model; None for any other class."""
    for home, names in _MAKERS.items():
        module = sys.modules.get(home)
        for name, make in names.items() if module is not None else ():
            if kind is getattr(module, name):
                return make
    if issubclass(kind, enum.Enum):
        return _enum_maker(kind)
    if issubclass(kind, bytes):
        return _revive_bytes
    return _model_maker(kind) or _science_maker(kind)


def _model_maker(kind: Any) -> Revive | None:
    """The converter of a pydantic model, or of another pydantic type such as HttpUrl; pydantic itself is never imported."""
    for method in ("model_validate", "parse_obj"):  # of version 2, and of version 1
        if hasattr(kind, method):
            return getattr(kind, method)  # type: ignore[no-any-return]  # pydantic is an optional dependency
    pydantic: Any = sys.modules.get("pydantic")
    if pydantic is None or kind.__module__.partition(".")[0] not in {"pydantic", "pydantic_core"}:
        return None
    return pydantic.TypeAdapter(kind).validate_python  # type: ignore[no-any-return]  # pydantic is an optional dependency


def _science_maker(kind: Any) -> Revive | None:
    for home, names in (("numpy", ("ndarray",)), ("pandas", ("DataFrame", "Series"))):
        module: Any = sys.modules.get(home)
        if module is not None and kind in [getattr(module, name) for name in names]:
            return module.asarray if home == "numpy" else kind  # type: ignore[no-any-return]  # numpy is an optional dependency
    numpy: Any = sys.modules.get("numpy")
    return kind if numpy is not None and issubclass(kind, numpy.generic) else None


def _enum_maker(kind: type[enum.Enum]) -> Revive:
    choose = choose_by([(enum_value(member), member) for member in kind])

    def revive(value: object) -> object:
        try:
            return choose(value)
        except ConversionError:
            # The schema offers members by name if their values are only known at run time.
            if isinstance(value, str) and value in kind.__members__:
                return kind[value]
            raise

    return revive


def choose_by(pairs: list[tuple[object, object]]) -> Revive:
    """A converter that chooses among values by their JSON form."""

    def revive(value: object) -> object:
        for written, wanted in pairs:
            if written == value and (type(written) is bool) == (type(value) is bool):
                return wanted
        names = ", ".join(repr(written) for written, _ in pairs[:MAX_CHOICES])
        raise ConversionError(f"{value!r:.{SHOWN}} is none of {names}")

    return revive


def _said(value: object, what: str, kinds: tuple[type, ...] = (str,)) -> str:
    """The value as a string, if it is of one of these types; `what` names the expected form in the error."""
    if type(value) in kinds:
        return str(value)
    raise ConversionError(f"{value!r:.{SHOWN}} is not {what}")


def _revive_datetime(value: object) -> object:
    import datetime as dt

    text = _said(value, "a date and time").upper()
    if len(text) <= len("2026-01-31"):
        raise ConversionError(f"{value!r} is a date without a time; write 2026-01-31T00:00:00")
    return dt.datetime.fromisoformat(text)


def _revive_date(value: object) -> object:
    import datetime as dt

    return dt.date.fromisoformat(_said(value, "a date"))


def _revive_time(value: object) -> object:
    import datetime as dt

    return dt.time.fromisoformat(_said(value, "a time of day"))


def _revive_duration(value: object) -> object:
    import datetime as dt

    return dt.timedelta(seconds=float(_said(value, "a number of seconds", (int, float))))


def _revive_decimal(value: object) -> object:
    import decimal

    text = _said(value, "a decimal number", (str, int, float))
    try:
        made = decimal.Decimal(text)
    except decimal.InvalidOperation:
        raise ConversionError(f"{value!r:.{SHOWN}} is not a decimal number") from None
    if not made.is_finite():
        raise ConversionError(f"{value!r:.{SHOWN}} is not a finite number")
    return made


def _revive_uuid(value: object) -> object:
    import uuid

    return uuid.UUID(_said(value, "a UUID"))


def _revive_bytes(value: object) -> bytes:
    import base64

    try:
        return base64.b64decode(_said(value, "base64"), validate=True)
    except ValueError as problem:
        raise ConversionError(f"is not base64: {problem}") from None


def _path_maker(name: str) -> Revive:
    def revive(value: object) -> object:
        import pathlib

        return getattr(pathlib, name)(_said(value, "a path"))

    return revive


def _address_maker(name: str) -> Revive:
    def revive(value: object) -> object:
        import ipaddress

        return getattr(ipaddress, name)(_said(value, "an address"))

    return revive


_MAKERS: dict[str, dict[str, Revive]] = {
    "datetime": {
        "datetime": _revive_datetime,
        "date": _revive_date,
        "time": _revive_time,
        "timedelta": _revive_duration,
    },
    "decimal": {"Decimal": _revive_decimal},
    "uuid": {"UUID": _revive_uuid},
    "pathlib": {
        "Path": _path_maker("Path"),
        "PosixPath": _path_maker("Path"),
        "PurePath": _path_maker("PurePath"),
        "PurePosixPath": _path_maker("PurePosixPath"),
    },
    "os": {"PathLike": _path_maker("Path")},
    "ipaddress": {
        name: _address_maker(name)
        for name in ("IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network", "IPv4Interface", "IPv6Interface")
    },
}


class UnreadableHintError(Exception):
    """A hint into which JSON cannot be converted, with the cure."""


class UnknownHintError(UnreadableHintError):
    """A hint that cannot be evaluated."""


class HintConverter:
    """Makes converters from JSON for type hints.

    With `checks`, a converter validates the types of the JSON; without, a schema has validated them already.
    `names` are the names that a hint written as text may use, and `evaluate` evaluates such a text.
    """

    def __init__(
        self,
        *,
        checks: bool = False,
        names: Mapping[str, object] | None = None,
        evaluate: Callable[[str, dict[str, object]], object] | None = None,
    ) -> None:
        self._checks = checks
        self._names = dict(names or {})
        self._evaluate = evaluate
        self._opened: dict[object, list[Revive | None]] = {}
        self._count = 0

    def read(self, hint: Any) -> Revive | None:
        """The converter of a hint; None if the JSON needs no conversion. Raises UnreadableHintError."""
        self._count += 1
        if self._count > MAX_HINTS:
            raise UnreadableHintError(f"unfolds to more than {MAX_HINTS:,} types; make it smaller")
        if hint is None or type(hint) is type:
            check = CHECKS.get(hint)
            if check is not None:
                return check if self._checks else None
        if isinstance(hint, str):
            return self.read(self._meaning(hint))
        return self._read(hint)

    def _meaning(self, text: str) -> object:
        if self._evaluate is None:
            raise UnknownHintError(f"{text[:SHOWN]!r} is written as text; write the type itself")
        try:
            return self._evaluate(text, self._names)
        except Exception as problem:  # noqa: BLE001 - a border to foreign code: a hint may be any expression
            raise UnknownHintError(f"{text[:SHOWN]!r} cannot be read: {problem}") from None

    def _read(self, hint: Any) -> Revive | None:
        import typing

        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is None:
            return self._read_name(hint)
        if origin is typing.Annotated:
            return self._annotated(*arguments)
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments)
        if origin is typing.Literal:
            pairs = [(to_json(member), member) for member in arguments]
            is_plain = all(written is wanted for written, wanted in pairs)
            return None if is_plain and not self._checks else choose_by(pairs)
        if origin in (typing.Required, typing.NotRequired, typing.Final) or str(origin).endswith(".ReadOnly"):
            return self.read(arguments[0])
        return self._class(origin, arguments)

    def _read_name(self, hint: Any) -> Revive | None:
        import typing

        if hint in (typing.Any, object):
            return None
        if (other := meant_by(hint)) is not None:
            return self.read(other)
        if not isinstance(hint, type):
            raise UnreadableHintError(f"{hint!r:.{SHOWN}} cannot be made from JSON; {CURE}")
        return self._class(hint, ())

    def _annotated(self, inner: object, *notes: object) -> Revive | None:
        make = self.read(inner)
        limits = [limit for note in notes for limit in limits_of(note)] if self._checks else []
        if not limits:
            return make

        def revive(value: object) -> object:
            for is_kept, text in limits:
                if not is_kept(value):
                    raise ConversionError(f"{value!r:.{SHOWN}} is not {text}")
            return value if make is None else make(value)

        return revive

    def _union(self, members: tuple[Any, ...]) -> Revive | None:
        """The converter of a union, which tries its members in order."""
        some = [member for member in members if member not in (None, type(None))]
        takes_none = len(some) < len(members)
        makers = [self.read(member) for member in some]
        if not any(makers) and not self._checks:
            return None
        if len(some) == 1:
            only = makers[0]
            return lambda value: value if only is None or (value is None and takes_none) else only(value)
        # Any text may be base64, so a union of str and bytes tries str first.
        some = sorted(some, key=lambda member: member is bytes and str in some)
        strict = HintConverter(checks=True, names=self._names, evaluate=self._evaluate)
        strict._opened = self._opened
        choices = [strict.read(member) for member in some]

        def revive(value: object) -> object:
            if value is None and takes_none:
                return None
            problems = []
            for choice in choices:
                try:
                    return value if choice is None else choice(value)
                except REFUSALS as problem:
                    problems.append(str(problem))
            raise ConversionError(f"fits none of its {len(choices)} types: {'; '.join(dict.fromkeys(problems))}")

        return revive

    def _class(self, kind: Any, arguments: tuple[Any, ...]) -> Revive | None:
        if kind is tuple:
            return self._tuple(arguments)
        if (arrays := array_hints()).get(kind, NOT_THERE) is not NOT_THERE:
            return self._array(arrays[kind], self.read(arguments[0]) if arguments else None)
        if (objects := object_hints()).get(kind, NOT_THERE) is not NOT_THERE:
            return self._mapping(objects[kind], arguments)
        return self._own_class(kind)

    def _own_class(self, kind: Any) -> Revive | None:
        if (outer := self._opened.get(kind)) is not None:
            # A recursive class: its converter exists by the time that this one is called.
            return lambda value: value if outer[0] is None else outer[0](value)
        if (make := maker_of(kind)) is not None:
            return make
        opened: list[Revive | None] = [None]
        self._opened[kind] = opened
        try:
            opened[0] = self._record(kind)
        finally:
            del self._opened[kind]
        return opened[0]

    def _array(self, make: Callable[[Any], object] | None, item: Revive | None) -> Revive | None:
        if make is None and item is None:
            return check_list if self._checks else None

        def revive(value: object) -> object:
            items = _each(check_list(value), item)
            return items if make is None else make(items)

        return revive

    def _tuple(self, arguments: tuple[Any, ...]) -> Revive:
        if not arguments or arguments[-1] is Ellipsis:
            item = self.read(arguments[0]) if arguments else None
            return lambda value: tuple(_each(check_list(value), item))
        makers = [] if arguments == ((),) else [self.read(argument) for argument in arguments]

        def revive(value: object) -> object:
            given = check_list(value)
            if len(given) != len(makers):
                raise ConversionError(f"has {len(given)} items and needs {len(makers)}")
            return tuple(
                _convert(make, item, place) for place, (make, item) in enumerate(zip(makers, given, strict=True))
            )

        return revive

    def _mapping(self, make: Callable[[Any], object] | None, arguments: tuple[Any, ...]) -> Revive | None:
        of_keys = self._key(arguments[0]) if arguments else None
        of_values = self.read(arguments[1]) if len(arguments) > 1 else None
        if of_keys is None and of_values is None and make is None:
            return check_dict if self._checks else None

        def revive(value: object) -> object:
            made: dict[object, object] = {}
            for name, inner in check_dict(value).items():
                made[_convert(of_keys, name, name)] = _convert(of_values, inner, name)
            return made if make is None else make(made)

        return revive

    def _key(self, hint: Any) -> Revive | None:
        """The converter of a key, which JSON always writes as text."""
        return hint if hint in (int, float) else None if hint is str else self.read(hint)

    def _record(self, kind: Any) -> Revive | None:
        """The converter of a dataclass, a NamedTuple, a TypedDict or an attrs class, by its fields."""
        import typing

        names = _field_names(kind)
        if names is None:
            raise UnreadableHintError(f"{kind.__qualname__} cannot be made from JSON; {CURE}")
        try:
            hints = typing.get_type_hints(kind, localns=self._names or None, include_extras=True)
        except Exception as problem:  # noqa: BLE001 - a border to foreign code: a hint may be any expression
            raise UnknownHintError(f"{kind.__name__}: {problem}; define it in the module of the class") from None
        makers: dict[str, Revive | None] = {}
        for name, takes_none in names.items():
            try:
                make = self.read(hints.get(name, typing.Any))
                makers[name] = or_none(make) if takes_none else make
            except UnreadableHintError as problem:
                raise type(problem)(f"{name}: {problem}") from None
        if not is_typed_dict(kind):
            return lambda value: _build(kind, _fields(value, makers, kind))
        if not self._checks and not any(makers.values()):
            return None
        demanded = required_keys(kind, hints)
        return lambda value: _refuse_missing(_fields(value, makers, kind), demanded)


def meant_by(hint: Any) -> Any:
    """The hint behind a NewType, a TypeVar, an alias or a forward reference; None for any other."""
    import typing

    if isinstance(hint, typing.TypeVar):
        return hint.__bound__ or typing.Any
    if hint is typing.LiteralString:
        return str
    if isinstance(hint, typing.ForwardRef):
        return hint.__forward_arg__
    if isinstance(hint, typing.NewType):
        return hint.__supertype__
    return hint.__value__ if type(hint).__name__ == "TypeAliasType" else None  # of Python 3.12


def is_typed_dict(kind: Any) -> bool:
    """Whether it is a TypedDict, of typing or of typing_extensions."""
    return hasattr(kind, "__required_keys__") and isinstance(kind, type) and issubclass(kind, dict)


def required_keys(kind: Any, hints: Mapping[str, object]) -> frozenset[str]:
    """The required keys of a TypedDict."""
    import typing

    marks: dict[object, bool] = {typing.Required: True, typing.NotRequired: False}
    # With postponed annotations __required_keys__ ignores Required and NotRequired, so these are read first.
    return frozenset(
        name for name, hint in hints.items() if marks.get(typing.get_origin(hint), name in kind.__required_keys__)
    )


def _field_names(kind: Any) -> dict[str, bool] | None:
    """The names of the fields of a class, each with whether its default is None; None for a class without declared fields."""
    if hasattr(kind, "__dataclass_fields__"):
        import dataclasses

        return {field.name: field.default is None for field in dataclasses.fields(kind) if field.init}
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return {name: kind._field_defaults.get(name, ...) is None for name in kind._fields}
    if hasattr(kind, "__attrs_attrs__"):
        fields = [field for field in kind.__attrs_attrs__ if field.init]
        return {getattr(field, "alias", None) or field.name: field.default is None for field in fields}
    return dict.fromkeys((*kind.__required_keys__, *kind.__optional_keys__), False) if is_typed_dict(kind) else None


def or_none(make: Revive | None) -> Revive | None:
    """The same converter for a value that may also be None."""
    return None if make is None else lambda value: None if value is None else make(value)


def _fields(value: object, makers: Mapping[str, Revive | None], kind: type) -> dict[str, object]:
    given = check_dict(value)
    if unknown := [name for name in given if name not in makers]:
        raise ConversionError(f"{kind.__name__} has no field {', '.join(unknown)[:SHOWN]}; it has {', '.join(makers)}")
    return {name: _convert(makers[name], inner, name) for name, inner in given.items()}


def _build(kind: Callable[..., object], fields: dict[str, object]) -> object:
    try:
        return kind(**fields)
    except ConversionError:
        raise
    except REFUSALS as problem:  # validation by the class itself, or a missing field
        raise ConversionError(str(problem)) from None


def _refuse_missing(fields: dict[str, object], demanded: frozenset[str]) -> dict[str, object]:
    if missing := sorted(demanded - fields.keys()):
        raise ConversionError(f"{', '.join(missing)} is missing")
    return fields


def _convert(make: Revive | None, value: object, step: str | int) -> object:
    """Convert one part of a value; `step` is added to the path of an error."""
    if make is None:
        return value
    try:
        return make(value)
    except ConversionError as problem:
        raise problem.at(step) from None
    except REFUSALS as problem:
        raise ConversionError(str(problem)).at(step) from None


def _each(items: list[object], make: Revive | None) -> list[object]:
    return items if make is None else [_convert(make, item, place) for place, item in enumerate(items)]
