"""What a built function returns: plain values that can also be read by attributes.

users = scrape_stargazers(repo="anthropics/claude")
users["total_found"], users.total_found
for user in users: ...      # its only list
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Record(dict[str, Any]):
    """A dict whose keys are attributes too; one that is called like a method of dict is only found by its key.

    It belongs to whoever called: it can be changed by its keys, and is equal to the plain dict that it holds.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        # What Python itself asks for by such names is no word of the tool's.
        if name in self and not name.startswith("__"):
            return self[name]
        known = ", ".join(map(str, self.keys())) or "nothing"
        raise AttributeError(f"there is no {name!r} in the answer; it holds {known}", name=name, obj=self)

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *(key for key in self.keys() if key.isidentifier())]


class Answer(Record):
    """The whole answer. If exactly one output of the tool is a list, to iterate over the answer is to iterate over that."""

    # A name that no output has.
    __slots__ = ("_toolcrib_listed",)

    def __init__(self, values: Mapping[str, object] | None = None, listed: str = "") -> None:
        super().__init__(values or {})
        self._toolcrib_listed = listed

    def __iter__(self) -> Iterator[Any]:
        listed = self._toolcrib_listed
        return iter(self[listed]) if listed in self.keys() else super().__iter__()


def to_answer(value: object, output_schema: Mapping[str, object] | None) -> Any:
    """The value of a call as its caller reads it."""
    if not isinstance(value, dict):
        return _with_attributes(value)
    return Answer({key: _with_attributes(item) for key, item in value.items()}, _only_list(output_schema or {}))


def _with_attributes(value: object) -> object:
    if isinstance(value, dict):
        return Record((key, _with_attributes(item)) for key, item in value.items())
    return [_with_attributes(item) for item in value] if isinstance(value, list) else value


def _only_list(schema: Mapping[str, object]) -> str:
    """The one output that is declared to be a list; empty if none is, or several are."""
    properties = schema.get("properties")
    named = properties.items() if isinstance(properties, dict) else ()
    lists = [name for name, output in named if isinstance(output, dict) and _is_list(output.get("type"))]
    return lists[0] if len(lists) == 1 else ""


def _is_list(declared: object) -> bool:
    return "array" in declared if isinstance(declared, list) else declared == "array"
