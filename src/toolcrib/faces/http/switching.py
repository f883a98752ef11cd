"""The switch of a bundle or a tool: the one thing that a PATCH can change, whoever owns it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.faces.http.bodies import only_keys, read_object
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from toolcrib.catalog.bundles import Bundles
    from toolcrib.faces.http.threads import Threads
    from toolcrib.faces.http.wire import Request

KNOWN = frozenset({"isEnabled"})


class Switching:
    """Reads what a PATCH says."""

    def __init__(self, bundles: Bundles, threads: Threads, body_bytes: int) -> None:
        self._bundles = bundles
        self._threads = threads
        self._body_bytes = body_bytes

    async def read(self, request: Request, bundle_id: str) -> bool:
        """Whether to switch on or off something of this bundle; whoever asks for more learns whether anybody could have it."""
        body = await read_object(request, self._body_bytes)
        if not body.keys() <= KNOWN:
            await self._threads.read(self._refuse_read_only, bundle_id)
        value = only_keys(body, KNOWN).get("isEnabled")
        if isinstance(value, bool):
            return value
        raise ToolError(Kind.VALIDATION, "body: isEnabled: write true or false")

    def _refuse_read_only(self, bundle_id: str) -> None:
        bundle = self._bundles.bundle(bundle_id)
        if bundle.read_only:
            message = f"the bundle {bundle.slug} is read-only here; of it and its tools only isEnabled can be changed"
            raise ToolError(Kind.BLOCKED, message)
