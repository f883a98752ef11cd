"""Register the lint of texts that models read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the lint; `Crib.warnings` and `crib check` ask it."""
    plugins.add_resource(
        "text_lint",
        "toolcrib.features.model_texts.lint:TextLint",
        given=lambda _: {},
    )
