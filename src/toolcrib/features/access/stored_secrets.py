"""Change the secrets of a project, and forget the access tokens that were obtained with an earlier value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from toolcrib.infra.oauth.access_tokens import AccessTokens
    from toolcrib.infra.secrets.lookup import Secrets


class SecretsCrib(Protocol):
    """A crib with secrets."""

    @property
    def secrets(self) -> Secrets:
        """The secrets that HTTP tools may use, by name."""

    @property
    def access_tokens(self) -> AccessTokens:
        """The access tokens of HTTP tools."""


def store_secret(crib: SecretsCrib, name: str, value: str) -> None:
    """Store a secret in the project."""
    _forget_tokens(crib, name)
    crib.secrets.set(name, value)


def remove_secret(crib: SecretsCrib, name: str) -> bool:
    """Remove a secret of the project; False if there is none of this name."""
    _forget_tokens(crib, name)
    return crib.secrets.remove(name)


def _forget_tokens(crib: SecretsCrib, name: str) -> None:
    try:
        before = crib.secrets.get(name)
    except ToolError:
        return  # an unreadable secret has obtained no token
    if before is not None:
        crib.access_tokens.forget(before.reveal())
