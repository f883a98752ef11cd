"""Which bundle is meant by what was typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.faces.cli.printing import count
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.ids import is_uuid7

if TYPE_CHECKING:
    from toolcrib.crib.anywhere import AnyCrib
    from toolcrib.model.bundle import Bundle


def known_bundle(crib: AnyCrib, name: str) -> Bundle:
    """The bundle of that slug or id; raises ToolError where there is none, or several."""
    found = [bundle for bundle in crib.list_bundles() if name in (bundle.slug, bundle.id)]
    if is_uuid7(name) and not found:
        return crib.bundles.bundle(name)
    if not found:
        raise ToolError(Kind.NOT_FOUND, f"there is no bundle {name!r:.80}; list them with: crib bundle list")
    if len(found) > 1:
        ids = ", ".join(bundle.id for bundle in found)
        raise ToolError(
            Kind.CONFLICT, f"{count(len(found), 'bundle')} are called {name!r:.80}; name one by its id: {ids}"
        )
    return found[0]
