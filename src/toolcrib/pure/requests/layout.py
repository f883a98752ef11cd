"""Where the fields of a request stand in its text, letter by letter, as the parser of YAML marks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = "tool_request"


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """The value of a field: from which letter to which, on which line it begins, and how it is written.

    `style` is empty for a plain word, else the mark that a scalar begins with; None for a list or a mapping.
    """

    start: int
    end: int
    line: int
    style: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The mapping below `tool_request`: where it begins, how far it is indented, and the values in it.

    `flow` says that it is written between { and }. `header` is where the word `tool_request` ends.
    """

    header: int
    start: int
    column: int
    flow: bool
    fields: Mapping[str, Span]


def lay_out(text: str) -> Layout | None:
    """Where things stand in a text that was read as YAML before; None if it holds no request."""
    import yaml

    from toolcrib.pure.yaml import events

    stream = events(text)
    for event in stream:
        if isinstance(event, yaml.MappingStartEvent):
            break
        if isinstance(event, yaml.NodeEvent):
            return None
    for key, value in _members(stream):
        if key.value == ROOT:
            return _layout(key, value, stream) if isinstance(value, yaml.MappingStartEvent) else None
    return None


def _layout(key: Any, value: Any, stream: Iterator[Any]) -> Layout:
    return Layout(
        header=key.end_mark.index,
        start=value.end_mark.index,
        column=value.end_mark.column,
        flow=value.flow_style,
        fields={name.value: _span(entry) for name, entry in _members(stream)},
    )


def _members(stream: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    """The keys of the mapping that the parser is in, each with what its value begins with; the rest of the value is skipped."""
    import yaml

    while not isinstance(key := next(stream), yaml.MappingEndEvent):
        value = next(stream)
        yield key, value
        depth = int(isinstance(value, yaml.CollectionStartEvent))
        while depth:
            event = next(stream)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)


def _span(event: Any) -> Span:
    import yaml

    style = None if isinstance(event, yaml.CollectionStartEvent) else getattr(event, "style", None) or ""
    return Span(start=event.start_mark.index, end=event.end_mark.index, line=event.start_mark.line + 1, style=style)
