"""Make Python objects from JSON by their type hints: the arguments of functions of the host and of files in a child.

Every launcher of the sandbox imports this, so it imports nothing before a hint needs it.
"""

from __future__ import annotations

import types

from toolcrib.values.class_values import (
    CHECKS,
    NOT_THERE,
    array_hints,
    check_dict,
    check_list,
    choose_by,
    limits_of,
    maker_of,
    object_hints,
)
from toolcrib.values.json_values import SHOWN, ConversionError, to_json

TYPE_CHECKING = False  # importing typing would take a fifth of the launcher's start
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Revive = Callable[[Any], object]

MAX_HINTS = 2_000
CURE = "use a plain type, a dataclass, a TypedDict, an Enum or a pydantic model"
# What a class may raise that refuses its fields.
REFUSALS = (ValueError, TypeError, KeyError, OverflowError, ArithmeticError)


class UnreadableHintError(Exception):
    """A hint of which no object can be made, with the cure."""


class UnknownHintError(UnreadableHintError):
    """A hint that cannot be evaluated, so that nothing is known about it."""


class HintConverter:
    """Finds out how the values of hints are made from JSON.

    With `checks`, JSON of another type than the hint's is an error; without, a schema has made sure of that already.
    `names` are those that a hint may use where it is written as text, and `evaluate` finds out what it means.
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
        """What makes an object from its JSON; None where the JSON is the object. Raises UnreadableHintError."""
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
        """Make the object by the first member that can."""
        some = [member for member in members if member not in (None, type(None))]
        takes_none = len(some) < len(members)
        makers = [self.read(member) for member in some]
        if not any(makers) and not self._checks:
            return None
        if len(some) == 1:
            only = makers[0]
            return lambda value: value if only is None or (value is None and takes_none) else only(value)
        # Any text may be base64, so text means text where both are allowed.
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
            # A class that contains itself: how it is made is known by the time it is needed.
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
        """What makes a key of its text: a number is written in digits."""
        return hint if hint in (int, float) else None if hint is str else self.read(hint)

    def _record(self, kind: Any) -> Revive | None:
        """A dataclass, a NamedTuple, a TypedDict or a class of attrs, made of its fields."""
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
    """The hint that a name stands for: a NewType, a TypeVar, an alias, a text; None for any other."""
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
    """The keys that a TypedDict demands."""
    import typing

    marks: dict[object, bool] = {typing.Required: True, typing.NotRequired: False}
    # With postponed annotations __required_keys__ ignores Required and NotRequired, so these are read first.
    return frozenset(
        name for name, hint in hints.items() if marks.get(typing.get_origin(hint), name in kind.__required_keys__)
    )


def _field_names(kind: Any) -> dict[str, bool] | None:
    """The names that a value is built from, each with whether None stands for it; None for a class that is no record."""
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
    """The same for a value that may also be None, as the default says."""
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
    except REFUSALS as problem:  # a validation of the class itself, or a field that is missing
        raise ConversionError(str(problem)) from None


def _refuse_missing(fields: dict[str, object], demanded: frozenset[str]) -> dict[str, object]:
    if missing := sorted(demanded - fields.keys()):
        raise ConversionError(f"{', '.join(missing)} is missing")
    return fields


def _convert(make: Revive | None, value: object, step: str | int) -> object:
    """The value, made of its JSON; an error says at which step from here it is wrong."""
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
