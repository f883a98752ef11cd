"""Documents as they are written down: JSON that a person can read and change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolcrib.dialects.platform.versions import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.bundle import Bundle


def write_tool(document: Mapping[str, object]) -> bytes:
    """The bytes of a tool's document."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def write_bundle(bundle: Bundle) -> bytes:
    """The bytes of a bundle's document; what never happened is left out."""
    times = {
        "createdAt": bundle.created_at,
        "modifiedAt": bundle.modified_at,
        "toggledAt": bundle.toggled_at,
        "softDeletedAt": bundle.soft_deleted_at,
    }
    document = {
        "schemaVersion": bundle.schema_version or SCHEMA_VERSION,
        "bundleID": bundle.id,
        "slug": bundle.slug,
        "displayName": bundle.display_name,
        "description": bundle.description,
        "isEnabled": bundle.enabled,
        **{name: time for name, time in times.items() if time},
    }
    return write_tool(document)
