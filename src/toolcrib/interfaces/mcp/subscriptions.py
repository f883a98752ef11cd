"""Notify listening clients of changed lists and resources; while no client listens, nothing is polled."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextvars import Context
from typing import TYPE_CHECKING

from toolcrib.core.sources import current_view, seen_through
from toolcrib.interfaces.mcp.messages import Code, ProtocolError, overloaded, write_notification
from toolcrib.interfaces.mcp.versions import SUBSCRIPTION_KEY

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.core.sources import View
    from toolcrib.crib import Crib
    from toolcrib.interfaces.mcp.client_link import Outlet, Peer
    from toolcrib.interfaces.mcp.messages import Id, Params

logger = logging.getLogger("toolcrib.mcp")

LOOK_SECONDS = 0.5
MAX_LISTENERS = 1_000
MAX_LISTENERS_IN_SESSION = 4
MAX_RESOURCES = 100
MAX_URI_LETTERS = 2_000
# What a client may subscribe to, and the notification that it gets.
TOOLS, PROMPTS, RESOURCES = "toolsListChanged", "promptsListChanged", "resourcesListChanged"
LISTS = {
    TOOLS: "notifications/tools/list_changed",
    PROMPTS: "notifications/prompts/list_changed",
    RESOURCES: "notifications/resources/list_changed",
}
# What a client with a view sees in each list.
Visible = dict[str, object]
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Listener:
    """A client that is notified of some changes; `subscription` is the id of its request."""

    def __init__(
        self, peer: Peer, outlet: Outlet, lists: frozenset[str], uris: set[str], subscription: Id | None = None
    ) -> None:
        self.caller = peer.caller
        # The session whose streams are counted; requests of the stateless wire belong to none.
        self.session = "" if peer.wire.is_stateless else peer.session
        self.lists = lists
        self.uris = uris
        # The view of the client; it is not notified of changes outside it.
        self.view = current_view()
        self.visible: Visible | None = None
        self._outlet = outlet
        self._meta: Params = {} if subscription is None else {"_meta": {SUBSCRIPTION_KEY: subscription}}

    @property
    def places(self) -> tuple[tuple[str, ...], ...]:
        """What it is counted under."""
        return (self.caller,), (self.caller, self.session)

    def notify_list(self, name: str) -> None:
        """Notify of a changed list, if the client subscribed to it."""
        if name in self.lists:
            self._outlet(write_notification(LISTS[name], self._meta or None))

    def notify_resource(self, uri: str) -> None:
        """Notify of a changed resource, if the client subscribed to it."""
        if uri in self.uris:
            self._outlet(write_notification(UPDATED, {"uri": uri, **self._meta}))

    def acknowledge(self) -> None:
        """Confirm the subscriptions of the client, before any notification."""
        wanted: Params = dict.fromkeys(sorted(self.lists), True)
        if self.uris:
            wanted["resourceSubscriptions"] = sorted(self.uris)
        self._outlet(write_notification(ACKNOWLEDGED, {"notifications": wanted, **self._meta}))


class Changes:
    """Watches a crib for changes on behalf of listeners; one caller may have `most` of them."""

    def __init__(self, crib: Crib, most: int) -> None:
        self._crib = crib
        self._most = most
        self._listeners: set[Listener] = set()
        # Of a caller, and of a session of one.
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._watching: asyncio.Task[None] | None = None
        self._seen: asyncio.Future[None] | None = None
        self._end_hearing: Callable[[], None] = lambda: None

    async def add(self, listener: Listener) -> None:
        """Notify this client of every change from now on; refused if too many listen."""
        of_caller, in_session = listener.places
        if listener.session and self._counts[in_session] >= MAX_LISTENERS_IN_SESSION:
            raise _too_many(f"at most {MAX_LISTENERS_IN_SESSION} streams of one session")
        if len(self._listeners) >= MAX_LISTENERS or self._counts[of_caller] >= self._most:
            raise _too_many(f"at most {self._most} streams of one caller")
        self._listeners.add(listener)
        self._counts.update(listener.places)
        if self._watching is None:
            loop = asyncio.get_running_loop()
            self._end_hearing = self._crib.publications.listen(
                lambda uri: loop.call_soon_threadsafe(self._notify_resource, uri)  # type: ignore[arg-type]  # it returns a handle
            )
            self._seen = loop.create_future()
            # It looks for every client, not limited to what the first one may see.
            self._watching = asyncio.create_task(self._watch(self._seen), context=Context())
        if self._seen is not None:
            # Only changes from here on are reported.
            try:
                await asyncio.shield(self._seen)
            except asyncio.CancelledError:
                self.remove(listener)
                raise
        if listener.view is not None:
            listener.visible = await asyncio.to_thread(self._visible, listener.view)

    def remove(self, listener: Listener) -> None:
        """Stop notifying this client."""
        if listener not in self._listeners:
            return
        self._listeners.discard(listener)
        for place in listener.places:
            self._counts[place] -= 1
            if not self._counts[place]:
                del self._counts[place]
        if not self._listeners:
            self.close()

    def close(self) -> None:
        """Stop watching for changes."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
            self._end_hearing()

    async def _watch(self, seen: asyncio.Future[None]) -> None:
        try:
            tools, published = await asyncio.to_thread(self._look)
        finally:
            if not seen.done():
                seen.set_result(None)
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                now, published_now = await asyncio.to_thread(self._look)
            except Exception:
                logger.exception("the catalogue could not be looked at for changes")
                continue
            changed = {TOOLS, RESOURCES} if now != tools else set()
            if published_now != published:
                changed |= {RESOURCES, PROMPTS}
            if changed:
                news = await asyncio.to_thread(self._look_for_limited)
                self._notify_lists(changed, news)
            tools, published = now, published_now

    def _look(self) -> tuple[object, int]:
        return self._crib.generation, self._crib.publications.generation

    def _look_for_limited(self) -> dict[Listener, set[str]]:
        """The lists that have changed for each client that sees only some of them."""
        known: dict[View, Visible] = {}
        news: dict[Listener, set[str]] = {}
        for listener in tuple(self._listeners):
            if listener.view is not None:
                if listener.view not in known:
                    known[listener.view] = self._visible(listener.view)
                before, listener.visible = listener.visible, known[listener.view]
                if before is not None:
                    news[listener] = {name for name in before if before[name] != listener.visible[name]}
        return news

    def _visible(self, view: View) -> Visible:
        with seen_through(view):
            tools = sorted((tool.name, tool.content_hash) for tool in self._crib.offered())
            published = self._crib.publications
            return {TOOLS: tools, RESOURCES: (tools, published.resources()), PROMPTS: published.prompts()}

    def _notify_lists(self, changed: set[str], news: dict[Listener, set[str]]) -> None:
        for listener in tuple(self._listeners):
            for name in LISTS:
                # One that began to listen meanwhile has seen the change.
                if name in (changed if listener.view is None else news.get(listener, ())):
                    listener.notify_list(name)

    def _notify_resource(self, uri: str) -> None:
        for listener in tuple(self._listeners):
            with seen_through(listener.view):
                is_seen = listener.view is None or self._crib.publications.find_resource(uri) is not None
            if is_seen:
                listener.notify_resource(uri)


def _too_many(most: str) -> ProtocolError:
    return overloaded(f"{most} may listen for changes; close one", status=429)


def read_filter(params: Params) -> tuple[frozenset[str], set[str]]:
    """What a client subscribes to: lists, and resources by their URIs."""
    wanted = params.get("notifications")
    if not isinstance(wanted, dict):
        raise ProtocolError(Code.INVALID_PARAMS, "notifications: must be an object")
    lists = frozenset(name for name in LISTS if wanted.get(name) is True)
    uris = wanted.get("resourceSubscriptions", [])
    if not isinstance(uris, list) or len(uris) > MAX_RESOURCES or not all(is_uri(uri) for uri in uris):
        message = f"notifications.resourceSubscriptions: must be at most {MAX_RESOURCES} URIs"
        raise ProtocolError(Code.INVALID_PARAMS, message)
    return lists, set(uris)


def is_uri(uri: object) -> bool:
    """Whether it may be the URI of a resource."""
    return isinstance(uri, str) and 0 < len(uri) <= MAX_URI_LETTERS
