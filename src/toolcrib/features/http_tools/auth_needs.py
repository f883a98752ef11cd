"""Find the secrets and logins that the requests of a tool need and that are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lib.http_auth import Reference
from toolcrib.lib.http_auth.declaration import declarations_of, read_auth
from toolcrib.lib.http_auth.kinds import OAuth2
from toolcrib.model.errors import ToolError
from toolcrib.model.tool import Chained

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.core.resources import Resources
    from toolcrib.lib.http_auth.kinds import Auth
    from toolcrib.model.tool import Tool


class AuthNeeds:
    """Compares what the `auth` of tools names with the stored secrets, logins and variables."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def missing(self, tool: Tool) -> list[str]:
        """What is missing, each with the command or the setting that provides it."""
        found: dict[str, None] = {}
        for declared in declarations_of(tool):
            try:
                auth = read_auth(declared)
            except ToolError:
                continue  # a problem of its own
            found |= dict.fromkeys(self._needs(tool, auth))
        return [*found]

    def _needs(self, tool: Tool, auth: Auth) -> Iterator[str]:
        references = auth.references()
        if isinstance(auth, OAuth2) and auth.login:
            references = (*references, Reference("secret", auth.login))
        for reference in references:
            name = reference.name
            needs_grant = reference.kind == "env" or isinstance(tool.run, Chained)
            if needs_grant and self._resources.variable(tool, name) is None:
                word = self._resources.variable_word(tool, name)
                yield f'auth names {reference}, which is not granted to it; add "{word}" to access.variables'
            elif reference.kind == "env":
                if not self._resources.environment.get(name):
                    yield f"auth names {reference}, which is not set; set the variable {name}"
            elif self._resources.data.secrets.get(name) is None:
                is_login = isinstance(auth, OAuth2) and name == auth.login
                what = "the login" if is_login else "the secret"
                yield f"auth names {what} {name}, which is not there; run: crib secret {'login' if is_login else 'set'} {name}"
