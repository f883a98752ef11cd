"""Make values of single classes from JSON: plain JSON that is checked, collections, dates, paths, enums and models.

Every launcher of the sandbox imports this, so it imports nothing before a class needs it.
"""

from __future__ import annotations

import enum
import sys
from _collections_abc import (  # what collections.abc offers; this module is always loaded
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

from toolcrib.values.json_values import SHOWN, ConversionError, enum_value

TYPE_CHECKING = False  # importing typing would take a fifth of the launcher's start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Revive = Callable[[Any], object]

MAX_CHOICES = 20


# Plain JSON, checked.


def _expect(name: str, *kinds: type) -> Revive:
    def check(value: object) -> object:
        if type(value) in kinds:
            return value
        raise ConversionError(f"{value!r:.{SHOWN}} is not {name}")

    return check


def _check_int(value: object) -> int:
    if type(value) is int or (type(value) is float and value.is_integer()):  # JSON knows one kind of number
        return int(value)
    raise ConversionError(f"{value!r:.{SHOWN}} is not an integer")


def check_list(value: object) -> list[object]:
    """A list as it is."""
    if isinstance(value, list):
        return value
    raise ConversionError(f"{value!r:.{SHOWN}} is not a list")


def check_dict(value: object) -> dict[str, object]:
    """An object as it is."""
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
    """What a note of Annotated demands: pydantic's Field and annotated_types have these attributes."""
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
        except TypeError:  # another member of a union, which the bound does not speak of
            return True

    return judge


# Classes that JSON has no value for.

NOT_THERE = object()
_ARRAYS: dict[object, Callable[[Any], object] | None] = {
    **dict.fromkeys((list, Sequence, MutableSequence, Collection, Iterable)),
    **dict.fromkeys((Iterator, Generator), iter),
    **dict.fromkeys((set, Set, MutableSet), set),
    frozenset: frozenset,
}
_OBJECTS: dict[object, Callable[[Any], object] | None] = dict.fromkeys((dict, Mapping, MutableMapping))


def array_hints() -> dict[object, Callable[[Any], object] | None]:
    """The hints that a JSON array satisfies, each with what makes its own kind of collection of a list."""
    collections = sys.modules.get("collections")
    return _ARRAYS if collections is None else {**_ARRAYS, collections.deque: collections.deque}


def object_hints() -> dict[object, Callable[[Any], object] | None]:
    """The hints that a JSON object satisfies, each with what makes its own kind of mapping of a dict."""
    collections: Any = sys.modules.get("collections")
    if collections is None:
        return _OBJECTS
    return {**_OBJECTS, collections.OrderedDict: None, collections.Counter: collections.Counter}


def maker_of(kind: Any) -> Revive | None:
    """What makes an object of a class that is no record from its JSON; None for any other class."""
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
    """What makes a model of pydantic, or another of its types such as HttpUrl; pydantic is not ours and is never imported."""
    for method in ("model_validate", "parse_obj"):  # of version 2, and of version 1
        if hasattr(kind, method):
            return getattr(kind, method)  # type: ignore[no-any-return]  # pydantic is not known here
    pydantic: Any = sys.modules.get("pydantic")
    if pydantic is None or kind.__module__.partition(".")[0] not in {"pydantic", "pydantic_core"}:
        return None
    return pydantic.TypeAdapter(kind).validate_python  # type: ignore[no-any-return]  # pydantic is not known here


def _science_maker(kind: Any) -> Revive | None:
    for home, names in (("numpy", ("ndarray",)), ("pandas", ("DataFrame", "Series"))):
        module: Any = sys.modules.get(home)
        if module is not None and kind in [getattr(module, name) for name in names]:
            return module.asarray if home == "numpy" else kind  # type: ignore[no-any-return]  # numpy is not ours
    numpy: Any = sys.modules.get("numpy")
    return kind if numpy is not None and issubclass(kind, numpy.generic) else None


def _enum_maker(kind: type[enum.Enum]) -> Revive:
    choose = choose_by([(enum_value(member), member) for member in kind])

    def revive(value: object) -> object:
        try:
            return choose(value)
        except ConversionError:
            # Values that only running code can tell are offered by name.
            if isinstance(value, str) and value in kind.__members__:
                return kind[value]
            raise

    return revive


def choose_by(pairs: list[tuple[object, object]]) -> Revive:
    """Choose among values by the JSON of each."""

    def revive(value: object) -> object:
        for written, wanted in pairs:
            if written == value and (type(written) is bool) == (type(value) is bool):
                return wanted
        names = ", ".join(repr(written) for written, _ in pairs[:MAX_CHOICES])
        raise ConversionError(f"{value!r:.{SHOWN}} is none of {names}")

    return revive


def _said(value: object, what: str, kinds: tuple[type, ...] = (str,)) -> str:
    """The text of a value that is written as text, or as one of the other kinds."""
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
