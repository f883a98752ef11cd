"""Which tool or bundle a document is about: its ids, its slug and its version, in the path and in the document itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.dialects.platform.report import show
from toolcrib.model.tool import slug_problem, version_problem
from toolcrib.pure.ids import is_uuid7

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.dialects.platform.fields import Fields

SAMPLE_ID = "018faf50-b7b6-7a01-9a05-a22a6e0af101"


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where a tool is kept."""

    bundle_id: str
    slug: str
    version: str


def check_address(document: Fields, address: Address) -> None:
    """Refuse an address that cannot be one, and a document that says another."""
    check_id(document, "bundleID", address.bundle_id)
    check_slug_of(document, address.slug)
    if problem := version_problem(address.version):
        document.refuse("version", f"{show(address.version)}: {problem}")
    refuse_other(document, "bundleID", address.bundle_id)
    refuse_other(document, "slug", address.slug)
    refuse_other(document, "version", address.version)


def check_id(document: Fields, name: str, id_: object) -> None:
    """Refuse what is no UUID of version 7."""
    if not is_uuid7(id_):
        document.refuse(name, f'{show(id_)} is no UUID of version 7; write one such as "{SAMPLE_ID}"')


def check_slug_of(document: Fields, slug: str) -> None:
    """Refuse what cannot be a slug."""
    if problem := slug_problem(slug):
        document.refuse("slug", f"{show(slug)}: {problem}")


def read_tool_id(document: Fields, otherwise: Callable[[], str]) -> str:
    """The id under `toolID` or `id`; where there is none, the one that `otherwise` gives."""
    written = [(name, document.values[name]) for name in ("toolID", "id") if name in document]
    for name, id_ in written:
        check_id(document, name, id_)
    ids = {str(id_).lower() for _, id_ in written}
    if len(ids) > 1:
        document.refuse("id", "is another than toolID; remove one of the two")
    return ids.pop() if ids else otherwise()


def refuse_other(document: Fields, name: str, expected: str) -> None:
    """Refuse a document that names another bundle, slug or version than the one it is for."""
    value = document.values.get(name, expected)
    # Letters of an id have no case.
    is_same = value == expected or (name == "bundleID" and str(value).lower() == expected.lower())
    if not is_same:
        document.refuse(name, f"{show(value)} is not {show(expected)}, which it is for; write that, or leave it out")
