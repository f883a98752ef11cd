"""Texts that models read: hidden characters, instructions, and names that imitate others are found before a model sees them."""

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
