"""The entry of one tool in the registry: what a reader in any language needs to offer it to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.tool import Handler

if TYPE_CHECKING:
    from toolcrib.model.tool import Tool

# That a provider shows fewer examples changes nothing about what a model may send.
SHOWN_ONLY = "examples"
SCHEMAS = {"openai": "openai", "gemini": "geminiNative"}


def entry_of(tool: Tool, warnings: tuple[str, ...]) -> dict[str, object]:
    """What the tool says of itself, how providers are offered it, and what its author should know.

    Places in warnings are paths from the root. Raises ToolError if a provider could not be offered the tool.
    """
    from toolcrib.pure.export import Provider, export_tool

    exports = {provider: export_tool(tool, Provider(provider)) for provider in SCHEMAS}
    losses = [(provider, loss) for provider, export in exports.items() for loss in export.losses]
    schema = f"{tool.run.folder}/schema.json" if isinstance(tool.run, Handler) else ""
    return {
        "version": tool.version,
        "description": tool.description,
        "category": tool.behaviour,
        "sideEffects": tool.side_effects,
        "idempotent": tool.idempotent,
        "requiresConfirmation": tool.requires_confirmation,
        "allowedModes": sorted(tool.modes or ()),
        "latencyBudgetMs": tool.limits.latency_budget_ms,
        "parameters": tool.parameters,
        **_options(tool),
        "summary": tool.summary,
        "providerSchemas": {SCHEMAS[provider]: export.definition for provider, export in exports.items()},
        "losses": [
            {"provider": provider, "path": loss.path, "keyword": loss.keyword, "text": loss.text}
            for provider, loss in losses
        ],
        "warnings": [
            *warnings,
            *(
                f"{schema}:1: for {provider}: parameters{loss}"
                for provider, loss in losses
                if loss.keyword != SHOWN_ONLY
            ),
        ],
    }


def _options(tool: Tool) -> dict[str, object]:
    """The fields that a tool may have, as far as it has them."""
    found = {
        "requires": sorted(tool.requires) or None,
        "hosts": list(tool.run.hosts) if isinstance(tool.run, Handler) and tool.run.hosts is not None else None,
        "outputSchema": tool.output_schema,
        "timeoutMs": tool.limits.timeout_ms,
        "tags": list(tool.tags) or None,
        "displayName": tool.display_name or None,
    }
    return {name: value for name, value in found.items() if value is not None}
