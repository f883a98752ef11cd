"""The table [depots] of the settings."""

from __future__ import annotations

from toolcrib.infra.settings import Table, read_switch, read_words, setting


class DepotsSettings(Table, name="depots"):
    """Whose published tools are trusted."""

    keys: tuple[str, ...] = setting(
        default=(), read=read_words, summary="public keys (`ed25519:…`) whose signatures of published tools are trusted"
    )
    signed: bool = setting(
        default=False, read=read_switch, opens=False, summary="whether only tools with a trusted signature are pulled"
    )
