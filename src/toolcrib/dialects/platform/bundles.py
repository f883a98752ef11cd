"""Documents of bundles, as clients send them and as they lie in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.dialects.platform.addresses import check_id, check_slug_of, refuse_other
from toolcrib.dialects.platform.building import MAX_DISPLAY_NAME, check_built_in
from toolcrib.dialects.platform.fields import open_document
from toolcrib.dialects.platform.stored import read_fields, read_times
from toolcrib.dialects.platform.versions import SCHEMA_VERSION
from toolcrib.dialects.platform.wire import BUNDLE_COMPUTED
from toolcrib.model.bundle import Bundle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.dialects.platform.fields import Fields

REQUIRED = {"slug": '"weather"', "displayName": '"Weather"', "isEnabled": "true"}
OPTIONAL = ("description", "bundleID", "isBuiltIn")
MAX_DESCRIPTION = 10_000


def read_bundle(document: Mapping[str, object], *, bundle_id: str) -> Bundle:
    """Read the document of a bundle; what the platform works out itself is accepted and left out."""
    fields = open_document(document)
    for name, meant in fields.strangers((*REQUIRED, *OPTIONAL, *BUNDLE_COMPUTED)):
        fields.refuse(name, f"is no key of a bundle; write {meant}" if meant else "is no key of a bundle; remove it")
    return _read(fields, bundle_id, schema_version=SCHEMA_VERSION, times={})


def read_stored_bundle(data: bytes, *, bundle_id: str, place: str = "") -> Bundle:
    """Read a document of the store, which a person may have changed; raises ToolError that says what is broken."""
    fields = read_fields(data, place or f"bundles/{bundle_id}/bundle.json")
    return _read(fields, bundle_id, schema_version=fields.text("schemaVersion"), times=read_times(fields))


def _read(document: Fields, bundle_id: str, *, schema_version: str, times: Mapping[str, str]) -> Bundle:
    check_id(document, "bundleID", bundle_id)
    refuse_other(document, "bundleID", bundle_id)
    document.require(REQUIRED)
    check_built_in(document)
    slug = document.text("slug")
    if isinstance(document.values.get("slug"), str):
        check_slug_of(document, slug)
    bundle = Bundle(
        id=bundle_id.lower(),
        slug=slug,
        display_name=document.text("displayName", may_be_empty=False, longest=MAX_DISPLAY_NAME),
        description=document.text("description", longest=MAX_DESCRIPTION),
        enabled=document.switch("isEnabled") is True,
        schema_version=schema_version,
        created_at=times.get("createdAt", ""),
        modified_at=times.get("modifiedAt", ""),
        toggled_at=times.get("toggledAt", ""),
        soft_deleted_at=times.get("softDeletedAt", ""),
    )
    document.report.raise_problems()
    return bundle
