"""Tell clients which authorization server this server trusts: the metadata of a protected resource (RFC 9728)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolcrib.features.access.oauth import RESOURCE_PATH, Authorization
from toolcrib.model.errors import SettingsError
from toolcrib.toolkit.http import answer_json
from toolcrib.toolkit.http.contract import Reply
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable

if TYPE_CHECKING:
    from toolcrib.interfaces.http.settings import ServerSettings
    from toolcrib.toolkit.http import Answer, Request

MCP_PATH = "/mcp"


def authorization_of(settings: ServerSettings, private: tuple[str, ...]) -> Authorization | None:
    """What verifies the tokens of the authorization server that the settings name; None if they name none."""
    if not settings.oauth_issuer:
        if keys := sorted(settings.explicit_keys & {"oauth_resource", "oauth_keys"}):
            raise SettingsError(f"server.{keys[0]} is set without server.oauth_issuer; name the authorization server")
        return None
    if not settings.oauth_resource:
        raise SettingsError("server.oauth_issuer needs server.oauth_resource: the URL that its tokens are made for")
    return Authorization(settings.oauth_issuer, settings.oauth_resource, keys_url=settings.oauth_keys, private=private)


class ResourceMetadata:
    """Answers with the metadata of the resource."""

    def __init__(self, authorization: Authorization) -> None:
        self._metadata = authorization.metadata

    async def read(self, request: Request) -> Answer:
        """GET /.well-known/oauth-protected-resource, and the same followed by the path of the resource."""
        return answer_json(self._metadata)


def resource_metadata(authorization: Authorization) -> EndpointTable:
    """The endpoints of the metadata; there are none where no authorization server is named."""
    own_path = urlsplit(authorization.metadata_url).path
    paths = {path: f"readResourceMetadata{number}" for number, path in enumerate({own_path, RESOURCE_PATH + MCP_PATH})}
    paths.pop(RESOURCE_PATH, None)
    return EndpointTable(
        tag="oauth",
        summary="Which authorization server gives tokens for this server.",
        make=lambda _: ResourceMetadata(authorization),
        described=False,
        endpoints=(
            Endpoint(
                name="readResourceMetadata",
                method="GET",
                path=RESOURCE_PATH,
                aliases=paths,
                handler=ResourceMetadata.read,
                scope=None,
                summary="Read which authorization server gives tokens for this server.",
                replies={200: Reply(description="The metadata (RFC 9728).")},
            ),
        ),
    )
