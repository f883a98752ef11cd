"""The secrets of a project and the key that it signs with."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from toolcrib.infra.secrets import SecretsSettings
from toolcrib.infra.secrets.lookup import Secrets, load_key, new_key
from toolcrib.infra.secrets.secret import HideSecrets

if TYPE_CHECKING:
    from toolcrib.core.resources import Resources


def open_secrets(resources: Resources) -> Secrets:
    """Open the secrets that the settings name, and keep them out of the log."""
    settings, root = resources.settings.table(SecretsSettings), resources.settings.root
    file = settings.file
    secrets = Secrets(
        resources.data.path,
        environment=resources.environment,
        names=settings.environment,
        file=file if file is None or root is None else root / file,
        keyring=settings.keyring,
        record=resources.record,
    )
    # What an interface shows of our log; a host program adds the filter to handlers of its own.
    for handler in logging.getLogger("toolcrib").handlers:
        handler.addFilter(HideSecrets(secrets.masking))
    return secrets


def open_key(resources: Resources) -> bytes:
    """Read the key that signs confirmations and the tokens of pages; without a project it lasts as long as the Crib."""
    path = resources.data.path
    return new_key() if path is None else load_key(path / "key")
