"""What is published beside tools: resources that clients read, prompts that users choose, and those of one Crib."""

from __future__ import annotations

import re
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from toolcrib.core.sources import current_view
from toolcrib.lib.names import HOST
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from toolcrib.core.resources import Resources


MARK = "__toolcrib_published__"
MAX_URI = 2_000
_URI = re.compile(r"[a-z][a-z0-9+.-]*:[^\s\x00-\x1f\x7f]*", re.IGNORECASE)
_SLOT = re.compile(r"\{([A-Za-z_]\w*)\}")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")

F = TypeVar("F", bound="Callable[..., object]")


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedResource:
    """A resource, or with slots such as `{id}` in its `uri` a template of many.

    `read` is called with a context and the values of the slots, may be async, and returns text, bytes, or a list of them.
    `choices` are the completions of a slot. A caller that is limited to bundles, tags or a mode sees only resources that have
    them.
    """

    uri: str
    read: Callable[..., object]
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""
    bundle: str = HOST
    tags: tuple[str, ...] = ()
    modes: frozenset[str] | None = None
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_modes(f"resource {self.uri[:80]!r}", self.modes)
        if len(self.uri) > MAX_URI or not _URI.fullmatch(_SLOT.sub("x", self.uri)):
            raise ToolError(Kind.VALIDATION, f"resource {self.uri[:80]!r}: write a URI such as 'notes://today'")
        if "}{" in self.uri or len(set(self.slots)) < len(self.slots):
            message = f"resource {self.uri[:80]!r}: give each slot a name of its own, and write something between two"
            raise ToolError(Kind.VALIDATION, message)

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of its slots."""
        return tuple(_SLOT.findall(self.uri))

    def match(self, uri: str) -> dict[str, str] | None:
        """The values of the slots if the URI matches, else None; a value contains no slash.

        Each value but the last ends where the text after its slot first occurs. There is no backtracking: the client chooses
        the URI, and the time would grow with a power of its length.
        """
        first, *rest = _SLOT.split(self.uri)
        pattern = re.escape(first)
        for at in range(0, len(rest), 2):
            slot, behind = rest[at], re.escape(rest[at + 1])
            is_last = at + 2 == len(rest)
            pattern += f"(?P<{slot}>[^/?#]+){behind}" if is_last else f"(?>(?P<{slot}>[^/?#]+?){behind})"
        found = re.fullmatch(pattern, uri)
        return None if found is None else {name: unquote(word) for name, word in found.groupdict().items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptArgument:
    """An argument of a prompt; `choices` are its possible values."""

    name: str
    description: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedPrompt:
    """A prompt. `render` is called with a context and the arguments, may be async, and returns a text or a list of messages.

    A message is a text of the user, a block of content such as an image, or `{"role": …, "content": …}`. A caller that is
    limited to bundles, tags or a mode sees only prompts that have them.
    """

    name: str
    render: Callable[..., object]
    title: str = ""
    description: str = ""
    bundle: str = HOST
    tags: tuple[str, ...] = ()
    modes: frozenset[str] | None = None
    arguments: tuple[PromptArgument, ...] = ()

    def __post_init__(self) -> None:
        _check_modes(f"prompt {self.name[:80]!r}", self.modes)
        if not _NAME.fullmatch(self.name):
            raise ToolError(
                Kind.VALIDATION, f"prompt {self.name[:80]!r}: write 1 to 128 letters, digits, '_', '-' or '.'"
            )


Published = PublishedResource | PublishedPrompt


def resource(
    uri: str,
    *,
    name: str = "",
    title: str = "",
    description: str = "",
    mime_type: str = "",
    bundle: str = HOST,
    tags: Iterable[str] = (),
    modes: Iterable[str] | None = None,
    **choices: Sequence[str],
) -> Callable[[F], F]:
    """Publish a function as a resource: `@resource("notes://{day}", day=["today", "yesterday"])`.

    The function is called with a context and the values of the slots, and is not changed. Further keywords are the
    completions of the slots of that name.
    """

    def mark(function: F) -> F:
        made = PublishedResource(
            uri=uri,
            read=function,
            name=name or _name_of(function),
            title=title,
            description=description or _summary(function),
            mime_type=mime_type,
            bundle=bundle,
            tags=tuple(tags),
            modes=None if modes is None else frozenset(modes),
            choices=choices,
        )
        setattr(function, MARK, made)
        return function

    return mark


def prompt(
    *arguments: PromptArgument | str,
    name: str = "",
    title: str = "",
    description: str = "",
    bundle: str = HOST,
    tags: Iterable[str] = (),
    modes: Iterable[str] | None = None,
) -> Callable[[F], F]:
    """Publish a function as a prompt: `@prompt("topic", PromptArgument(name="tone", choices=("dry", "warm")))`.

    An argument that is given by its name alone is required. The function is not changed.
    """
    listed = tuple(
        PromptArgument(name=argument, required=True) if isinstance(argument, str) else argument
        for argument in arguments
    )

    def mark(function: F) -> F:
        made = PublishedPrompt(
            name=name or _name_of(function),
            render=function,
            title=title,
            description=description or _summary(function),
            bundle=bundle,
            tags=tuple(tags),
            modes=None if modes is None else frozenset(modes),
            arguments=listed,
        )
        setattr(function, MARK, made)
        return function

    return mark


def published_of(value: object) -> Published | None:
    """What `@resource` or `@prompt` made of a function; the thing itself; None for anything else."""
    found = value if isinstance(value, Published) else getattr(value, MARK, None)
    return found if isinstance(found, Published) else None


def _check_modes(place: str, modes: frozenset[str] | None) -> None:
    if modes is not None and not modes <= MODES:
        raise ToolError(Kind.VALIDATION, f"{place}: the modes are {' and '.join(sorted(MODES))}")


def _is_seen(published: Published) -> bool:
    """Whether the current caller sees it."""
    view = current_view()
    if view is None:
        return True
    return view.shows_published(published.name, published.bundle, published.tags, published.modes)


def _name_of(function: Callable[..., object]) -> str:
    return str(getattr(function, "__name__", "resource"))


def _summary(function: Callable[..., object]) -> str:
    return (function.__doc__ or "").strip().partition("\n")[0]


class Publications:
    """What is published, by URI and by name. `generation` changes with every addition and removal.

    What the current caller may not see is not found. Threads may share it. A listener is called with the URI of each resource whose
    content has changed.
    """

    def __init__(self, resources: Resources) -> None:
        self.generation = 0
        self._lock = threading.Lock()
        self._resources: dict[str, PublishedResource] = {}
        self._prompts: dict[str, PublishedPrompt] = {}
        self._listeners: list[Callable[[str], None]] = []
        for part in resources.plugins.parts("publications"):
            self.add(part.load())
        for name in resources.settings["modules"].tools:
            for found in _published_in(name):
                self.add(found)

    def add(self, value: Published | Callable[..., object]) -> None:
        """Publish a resource or a prompt, or a function that is marked as one; an equal name replaces the former."""
        found = published_of(value)
        with self._lock:
            if isinstance(found, PublishedResource):
                self._resources[found.uri] = found
            elif isinstance(found, PublishedPrompt):
                self._prompts[found.name] = found
            else:
                message = f"{value!r:.80} is neither a resource nor a prompt; mark it with @resource or @prompt"
                raise ToolError(Kind.VALIDATION, message)
            self.generation += 1

    def remove(self, name: str) -> bool:
        """Unpublish a resource, by its URI, or a prompt, by its name; False if there is none."""
        with self._lock:
            found = self._resources.pop(name, None) or self._prompts.pop(name, None)
            self.generation += found is not None
        return found is not None

    def resources(self) -> list[PublishedResource]:
        """Every resource and template, in the order of their URIs."""
        return [found for _, found in sorted(self._resources.items()) if _is_seen(found)]

    def prompts(self) -> list[PublishedPrompt]:
        """Every prompt, in the order of their names."""
        return [found for _, found in sorted(self._prompts.items()) if _is_seen(found)]

    def find_resource(self, uri: str) -> tuple[PublishedResource, dict[str, str]] | None:
        """The resource of a URI, and the values of its slots; None if there is none."""
        found = self._resources.get(uri)
        if found is not None and not found.slots and _is_seen(found):
            return found, {}
        for template in self.resources():
            words = template.match(uri) if template.slots else None
            if words is not None:
                return template, words
        return None

    def listen(self, hear: Callable[[str], None]) -> Callable[[], None]:
        """Call a function with the URI of each changed resource, in the thread that reports it; returns a function that ends this."""
        self._listeners.append(hear)
        return lambda: self._listeners.remove(hear)

    def tell_changed(self, uri: str) -> None:
        """Notify the listeners that the content of a resource has changed."""
        for hear in list(self._listeners):
            hear(uri)


def _published_in(module: str) -> Iterator[Published]:
    """The module-level resources and prompts; a module that could not be loaded is reported with its tools."""
    loaded = sys.modules.get(module)
    for value in [] if loaded is None else list(vars(loaded).values()):
        try:
            found = published_of(value)
        except Exception:  # noqa: BLE001, S112 - the border to foreign code: a stand-in may raise when it is asked
            continue
        if found is not None:
            yield found
