"""Reading replies without their vendor's package: an object of the package and the plain JSON of the wire look alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def has(thing: object, name: str) -> bool:
    """Whether there is an item or an attribute of that name."""
    return name in thing if isinstance(thing, Mapping) else hasattr(thing, name)


def part(thing: object, *names: str) -> object:
    """The first of these items or attributes that there is and that is not null."""
    for name in names:
        value: object = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        if value is not None:
            return value
    return None


def items(value: object) -> Sequence[object]:
    """A list as it is; whatever else a reply has in its place holds nothing."""
    return value if isinstance(value, (list, tuple)) else ()


def text(value: object) -> str:
    """A text as it is; whatever else a reply has in its place says nothing."""
    return value if isinstance(value, str) else ""
