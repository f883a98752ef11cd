"""Sign the requests of HTTP tools: the one place where credentials are added to a request.

`compile_auth` reads the mapping `auth` of a request once per tool; `sign` is called once per attempt, after the slots were
filled and the host was checked, and `renew` after a response with the status 401.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.features.http_tools.slots import Lookup, Read, Slot
    from toolcrib.infra.egress import Request, Response


class Signer(Protocol):
    """Adds credentials to the requests of one tool. `slots` are those that its mapping holds."""

    slots: frozenset[Slot]

    async def sign(self, request: Request, lookup: Lookup) -> Request:
        """The same request with its credentials; `lookup` gives the values of slots, and hides secrets in all reports.

        Headers that it adds belong to `secret_headers`, so that they do not follow a redirect to another origin.
        """

    async def renew(self, request: Request, response: Response, lookup: Lookup) -> bool:
        """Whether a refused request is worth one more attempt with new credentials, which are there when this returns."""


def compile_auth(auth: Mapping[str, object], read: Read) -> Signer | None:  # noqa: ARG001 - for kinds with slots
    """What signs requests as the mapping says, None for an empty one; `read` reads the slots of a text.

    Raises ToolError for what cannot be used.
    """
    if not auth:
        return None
    raise ToolError(Kind.VALIDATION, f"type: {auth.get('type')!r:.40} is unknown; leave auth out")
