"""Lint of the texts that models read: hidden characters, instructions, and names that imitate others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the lint, which `Crib.warnings` and `crib check` use."""
    plugins.add_resource(
        "text_lint",
        "toolcrib.features.model_texts.lint:TextLint",
        given=lambda _: {},
    )
