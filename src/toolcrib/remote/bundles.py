"""The bundles of a server: made, switched and deleted there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from toolcrib.remote import shapes
from toolcrib.remote.reading import read_bundle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.bundle import Bundle
    from toolcrib.remote.connection import Answer
    from toolcrib.remote.shapes import Shape


class Ask(Protocol):
    """Asks the server."""

    def __call__(self, method: str, path: str, shape: Shape, *, body: Mapping[str, object] | None = None) -> Answer:
        """An answer of that shape; raises ToolError where the server refuses."""


class RemoteBundles:
    """Does with the bundles of a server what `Bundles` does with those of this machine."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def bundle(self, bundle_id: str) -> Bundle:
        """One of them."""
        return read_bundle(self._send("GET", bundle_id).document)

    def put_bundle(self, bundle_id: str, document: Mapping[str, object]) -> tuple[Bundle, bool]:
        """Make or replace one; whether it is new."""
        answer = self._send("PUT", bundle_id, document)
        return read_bundle(answer.document), answer.is_new

    def switch_bundle(self, bundle_id: str, enabled: bool) -> Bundle:  # noqa: FBT001 - a switch is what it is about
        """Switch one on or off."""
        return read_bundle(self._send("PATCH", bundle_id, {"isEnabled": enabled}).document)

    def delete_bundle(self, bundle_id: str) -> Bundle:
        """Delete one that is empty."""
        return read_bundle(self._send("DELETE", bundle_id).document)

    def put_tool(self, bundle_id: str, slug: str, version: str, document: Mapping[str, object]) -> None:
        """Add a version of a tool."""
        self._ask("PUT", place_of(bundle_id, slug, version), shapes.SWITCHED, body=document)

    def delete_tool(self, bundle_id: str, slug: str, version: str) -> None:
        """Remove a version of a tool for good."""
        self._ask("DELETE", place_of(bundle_id, slug, version), shapes.NOTHING)

    def _send(self, method: str, bundle_id: str, body: Mapping[str, object] | None = None) -> Answer:
        return self._ask(method, place_of(bundle_id), shapes.BUNDLE_ANSWER, body=body)


def place_of(bundle_id: str, slug: str = "", version: str = "") -> str:
    """The path of a bundle, or of a version of a tool in it."""
    bundle, tool, number = (quote(word, safe="") for word in (bundle_id, slug, version))
    return f"/tools/bundles/{bundle}/tools/{tool}/version/{number}" if slug else f"/tools/bundles/{bundle}"
