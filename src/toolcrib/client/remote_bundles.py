"""Manage the bundles of a server and the tools stored in them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from toolcrib.client import shapes
from toolcrib.client.shapes import read_bundle
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.client.connection import Answer
    from toolcrib.client.server import Server
    from toolcrib.model.bundle import Bundle

BUNDLES = "/tools/bundles"


class RemoteBundles:
    """The interface of `Bundles` for the bundles of a server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def list_all(self) -> list[Bundle]:
        """Every bundle, including disabled ones."""
        found = self._server.list(BUNDLES, [("includeDisabled", "true")], "bundles", shapes.BUNDLE_PAGE)
        return [read_bundle(document) for document in found]

    def document(self, bundle_id: str, slug: str, version: str) -> Mapping[str, object] | None:
        """The document of a version of a tool, with its id and times; None if there is none."""
        try:
            return self._server.ask("GET", place_of(bundle_id, slug, version), shapes.STORED).document
        except ToolError as problem:
            if problem.kind is Kind.NOT_FOUND:
                return None
            raise

    def export_bundle(self, bundle_id: str) -> bytes:
        """A bundle and all its tools as a ZIP archive."""
        return self._server.download(f"{place_of(bundle_id)}/archive")

    def import_bundle(self, bundle_id: str, data: bytes, *, slug: str = "", enable: bool = False) -> Bundle:
        """Store the bundle of an archive and all its tools under this id, atomically."""
        query = [("enable", str(enable).lower()), *([("slug", slug)] if slug else [])]
        answer = self._server.ask(
            "POST", f"{place_of(bundle_id)}/archive", shapes.BUNDLE_ANSWER, query=query, body=data
        )
        return read_bundle(answer.document)

    def bundle(self, bundle_id: str) -> Bundle:
        """The bundle of that id."""
        return read_bundle(self._send("GET", bundle_id).document)

    def put_bundle(self, bundle_id: str, document: Mapping[str, object]) -> tuple[Bundle, bool]:
        """Create or replace a bundle; returns it and whether it is new."""
        answer = self._send("PUT", bundle_id, document)
        return read_bundle(answer.document), answer.is_new

    def switch_bundle(self, bundle_id: str, enabled: bool) -> Bundle:  # noqa: FBT001 - a boolean is the point of it
        """Enable or disable a bundle."""
        return read_bundle(self._send("PATCH", bundle_id, {"isEnabled": enabled}).document)

    def delete_bundle(self, bundle_id: str) -> Bundle:
        """Delete an empty bundle."""
        return read_bundle(self._send("DELETE", bundle_id).document)

    def put_tool(self, bundle_id: str, slug: str, version: str, document: Mapping[str, object]) -> None:
        """Add a version of a tool."""
        self._server.ask("PUT", place_of(bundle_id, slug, version), shapes.SWITCHED, body=document)

    def delete_tool(self, bundle_id: str, slug: str, version: str) -> None:
        """Remove a version of a tool permanently."""
        self._server.ask("DELETE", place_of(bundle_id, slug, version), shapes.NOTHING)

    def _send(self, method: str, bundle_id: str, body: Mapping[str, object] | None = None) -> Answer:
        return self._server.ask(method, place_of(bundle_id), shapes.BUNDLE_ANSWER, body=body)


def place_of(bundle_id: str, slug: str = "", version: str = "") -> str:
    """The path of a bundle, or of a version of a tool in it."""
    bundle, tool, number = (quote(word, safe="") for word in (bundle_id, slug, version))
    return f"{BUNDLES}/{bundle}/tools/{tool}/version/{number}" if slug else f"{BUNDLES}/{bundle}"
