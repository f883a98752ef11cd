"""Bundles and tools as clients read them: what their authors wrote, and what the platform knows besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.dialects.platform.versions import SCHEMA_VERSION
from toolcrib.model.bundle import Owner
from toolcrib.model.tool import Http

if TYPE_CHECKING:
    from toolcrib.model.bundle import Bundle, Found, Kept
    from toolcrib.model.tool import Tool

# What the platform works out itself, for whoever reads a tool or for its own use, and what nobody can write.
COMPUTED = frozenset(
    {"id", "bundleSlug", "effectiveEnabled", "disabledReason", "source", "createdAt", "modifiedAt", "toggledAt"}
    | {"softDeletedAt", "callCount", "lastCalledAt", "warnings", "match", "score", "digest"}
)
ADDRESS = frozenset({"bundleID", "toolID", "slug", "version"})
BUNDLE_COMPUTED = frozenset({"source", "schemaVersion", "createdAt", "modifiedAt", "toggledAt", "softDeletedAt"})


def bundle_to_wire(bundle: Bundle) -> dict[str, object]:
    """A bundle as a client reads it; a time that never was is null."""
    return {
        "schemaVersion": bundle.schema_version or SCHEMA_VERSION,
        "bundleID": bundle.id,
        "slug": bundle.slug,
        "displayName": bundle.display_name,
        "description": bundle.description,
        "isEnabled": bundle.enabled,
        "isBuiltIn": bundle.built_in,
        "source": str(bundle.owner),
        "createdAt": bundle.created_at or None,
        "modifiedAt": bundle.modified_at or None,
        "toggledAt": bundle.toggled_at or None,
        "softDeletedAt": bundle.soft_deleted_at or None,
    }


def tool_to_wire(kept: Kept) -> dict[str, object]:
    """A tool as a client reads it: every key of its document, and what is known of it now.

    Of a broken file only what is known for certain has a key. A time that never was is null.
    """
    return {
        "schemaVersion": SCHEMA_VERSION,
        "bundleID": kept.bundle.id,
        "bundleSlug": kept.bundle.slug,
        "toolID": kept.id,
        "slug": kept.slug,
        "version": kept.version,
        **({} if kept.tool is None else _describe(kept.tool)),
        **{name: value for name, value in kept.document.items() if name not in COMPUTED | ADDRESS},
        **_state(kept),
    }


def found_to_wire(found: Found) -> dict[str, object]:
    """A tool that a search found, with why it was found."""
    return {**tool_to_wire(found.kept), "match": found.tier, "score": found.score}


def _describe(tool: Tool) -> dict[str, object]:
    """What any tool has, whichever way it was written down."""
    return {
        "displayName": tool.display_name or tool.name,
        "description": tool.description,
        "type": "http" if _makes_requests(tool) else "go",
        "argSchema": tool.parameters,
        "outputSchema": tool.output_schema or {},
        "impl": {"kind": tool.kind},
        "tags": list(tool.tags),
    }


def _makes_requests(tool: Tool) -> bool:
    """Whether a call goes over HTTP, by the tool's own description or by what its code asks leave for."""
    return isinstance(tool.run, Http) or tool.kind == "http" or "net.http" in tool.requires


def _state(kept: Kept) -> dict[str, object]:
    """What may be another thing tomorrow."""
    return {
        "isEnabled": kept.enabled,
        "isBuiltIn": kept.bundle.built_in,
        "effectiveEnabled": kept.usable,
        "disabledReason": kept.reason,
        "source": _source(kept),
        "createdAt": kept.created_at or None,
        "modifiedAt": kept.modified_at or None,
        "toggledAt": kept.toggled_at or None,
        "callCount": kept.calls,
        "lastCalledAt": kept.last_called_at or None,
        "warnings": list(kept.warnings),
    }


def _source(kept: Kept) -> str:
    """Who keeps it, or the kind of file that it is written down in."""
    if kept.bundle.owner is Owner.FILES and kept.tool is not None and kept.tool.source_type:
        return kept.tool.source_type
    return str(kept.bundle.owner)
