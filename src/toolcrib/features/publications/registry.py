"""The resources and prompts of one Crib: those of its modules, those of packages, and those added while it runs."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from toolcrib.features.publications.definitions import PublishedPrompt, PublishedResource, published_of
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolcrib.core.resources import Resources
    from toolcrib.features.publications.definitions import Published


class Publications:
    """What is published, by URI and by name. `generation` changes with every addition and removal.

    Threads may share it. A listener hears the URI of each resource whose content has changed.
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
        """Publish a resource, by its URI, or a prompt, by its name, no longer; False if there is none."""
        with self._lock:
            found = self._resources.pop(name, None) or self._prompts.pop(name, None)
            self.generation += found is not None
        return found is not None

    def resources(self) -> list[PublishedResource]:
        """Every resource and template, in the order of their URIs."""
        return [self._resources[uri] for uri in sorted(self._resources)]

    def prompts(self) -> list[PublishedPrompt]:
        """Every prompt, in the order of their names."""
        return [self._prompts[name] for name in sorted(self._prompts)]

    def find_resource(self, uri: str) -> tuple[PublishedResource, dict[str, str]] | None:
        """The resource of a URI, and the words of its slots."""
        found = self._resources.get(uri)
        if found is not None and not found.slots:
            return found, {}
        for template in self.resources():
            words = template.match(uri) if template.slots else None
            if words is not None:
                return template, words
        return None

    def find_prompt(self, name: str) -> PublishedPrompt | None:
        """The prompt of that name."""
        return self._prompts.get(name)

    def listen(self, hear: Callable[[str], None]) -> Callable[[], None]:
        """Hear of changed resources, in the thread that tells of them; the function that is returned ends it."""
        self._listeners.append(hear)
        return lambda: self._listeners.remove(hear)

    def tell_changed(self, uri: str) -> None:
        """Tell those who watch the resource that its content has changed."""
        for hear in list(self._listeners):
            hear(uri)


def _published_in(module: str) -> Iterator[Published]:
    """What stands at the top of a module; one that could not be loaded is reported with its tools."""
    loaded = sys.modules.get(module)
    for value in [] if loaded is None else list(vars(loaded).values()):
        try:
            found = published_of(value)
        except Exception:  # noqa: BLE001, S112 - the border to foreign code: a stand-in may raise when it is asked
            continue
        if found is not None:
            yield found
