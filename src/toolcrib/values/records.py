"""Make a class a frozen dataclass that is cheap to define.

`dataclass(frozen=True)` compiles six methods of a class while its module is imported, which was more than half of the time
that a cold `crib call` spent in our own modules. Records share these methods, and only a class with many instances gets a
compiled constructor. Otherwise they are dataclasses: `fields`, `replace`, `asdict`, `copy` and `pickle` work on them.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields, make_dataclass
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from dataclasses import Field

RecordT = TypeVar("RecordT")
# Compiling a constructor takes some 300 µs and saves 3 µs for each instance; a cold call makes up to fifteen instances of a class.
INSTANCES_BEFORE_COMPILING = 32


@overload
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[RecordT], /) -> type[RecordT]: ...
@overload
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(*, kw_only: bool) -> Callable[[type[RecordT]], type[RecordT]]: ...
def record(cls: type | None = None, /, *, kw_only: bool = True) -> object:
    """Make the class a frozen dataclass with slots; its fields are given by keyword, unless `kw_only` is false."""
    if cls is None:
        return lambda given: _make_record(given, kw_only=kw_only)
    return _make_record(cls, kw_only=kw_only)


def _make_record(cls: type, *, kw_only: bool) -> type:
    made: Any = dataclass(init=False, repr=False, eq=False, kw_only=kw_only, slots=True)(cls)
    own = fields(made)
    values = attrgetter(*[each.name for each in own if each.compare])
    instances = 0

    def construct(self: object, *positional: object, **named: object) -> None:
        nonlocal instances
        instances += 1
        if instances > INSTANCES_BEFORE_COMPILING or not _set_fields(self, own, positional, named):
            made.__init__ = _compile_constructor(made)
            made.__init__(self, *positional, **named)

    def equal(self: object, other: object) -> object:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    methods: dict[str, Callable[..., object]] = {
        "__init__": construct,
        "__eq__": equal,
        "__hash__": lambda self: hash(values(self)),
        "__repr__": _show,
        "__setattr__": _refuse_assignment,
        "__delattr__": _refuse_deletion,
        "__getstate__": _get_state,
        "__setstate__": _set_state,
    }
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]  # it is the class


def _set_fields(
    self: Any, own: Sequence[Field[Any]], positional: Sequence[object], named: Mapping[str, object]
) -> bool:
    """Set the fields as a constructor does; False for wrong arguments, for which the compiled constructor raises the error."""
    given = dict(zip([each.name for each in own if not each.kw_only], positional, strict=False))
    if len(given) < len(positional) or not named.keys().isdisjoint(given):
        return False
    given.update(named)
    for each in own:
        if each.name in given:
            value = given.pop(each.name)
        elif each.default is not MISSING:
            value = each.default
        elif each.default_factory is not MISSING:
            value = each.default_factory()
        else:
            return False
        object.__setattr__(self, each.name, value)
    if given:
        return False
    if hasattr(self, "__post_init__"):
        self.__post_init__()
    return True


def _compile_constructor(cls: type) -> Callable[..., None]:
    """The constructor that the standard library generates for a frozen dataclass with the same fields."""
    # Without a docstring, the standard library would generate one, which takes longer than all the rest.
    namespace = {name: getattr(cls, name) for name in ("__doc__", "__post_init__") if hasattr(cls, name)}
    copies = [
        (each.name, each.type, field(default=each.default, default_factory=each.default_factory, kw_only=each.kw_only))
        for each in fields(cls)
    ]
    twin: Any = make_dataclass(cls.__name__, copies, namespace=namespace, repr=False, eq=False, frozen=True)
    constructor: Callable[..., None] = twin.__init__
    return constructor


@recursive_repr()
def _show(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse_assignment(_: object, name: str, __: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: Sequence[object]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
