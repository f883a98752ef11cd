"""The parameters of a tool as each provider takes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, cast

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.export import forms, sayings, targets
from toolcrib.pure.export.model import Provider
from toolcrib.pure.export.opening import check_references, open_root
from toolcrib.pure.export.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.pure.export.model import Json, Loss
    from toolcrib.pure.export.reading import Losses
    from toolcrib.pure.schema.graph import Place

HASH_LETTERS = 8
SHOWN_LETTERS = 50
LABELS = {
    Provider.OPENAI: targets.OPENAI_NAME,
    Provider.OPENAI_RESPONSES: targets.OPENAI_NAME,
    Provider.ANTHROPIC: targets.ANTHROPIC_NAME,
    Provider.GEMINI: targets.GEMINI_NAME,
}


class Parameters(NamedTuple):
    """The schema as the provider takes it, what it lost, and what leads arguments back."""

    schema: Json
    losses: tuple[Loss, ...]
    absent: frozenset[Place] = frozenset()
    renamed: Mapping[str, str] = {}


def write_parameters(source: Mapping[str, object], provider: Provider, *, strict: bool) -> Parameters:
    """The parameters as the provider takes them; the source is not changed."""
    if provider is Provider.MCP:
        return Parameters(cast("Json", sayings.copy(source if "type" in source else {"type": "object", **source})), ())
    opened = open_root(source, LABELS[provider])
    target = _target(provider, strict=strict)
    if target is None:
        if opened.schema is not source:
            check_references(opened.schema)
        form = cast("Json", sayings.copy(opened.schema))
    else:
        form = Writer(target, source, opened.losses).write_root(opened.schema)
    form, renamed = _rename(form, LABELS[provider], opened.losses)
    absent: frozenset[Place] = frozenset()
    if target is targets.OPENAI_STRICT:
        form, absent = forms.to_strict(form)
    if target is targets.GEMINI:
        form = forms.to_gemini(form)
    return Parameters(form, opened.losses.all(), absent, renamed)


def _target(provider: Provider, *, strict: bool) -> targets.Target | None:
    """The restricted form; None where the provider takes any schema below the root."""
    if provider is Provider.GEMINI:
        return targets.GEMINI
    if not strict:
        return None
    return targets.ANTHROPIC_STRICT if provider is Provider.ANTHROPIC else targets.OPENAI_STRICT


def _rename(form: Json, label: str, losses: Losses) -> tuple[Json, dict[str, str]]:
    """Give arguments names that the provider takes; they lead back to the tool's own."""
    taken = targets.ARGUMENT_NAMES.get(label)
    properties = form.get("properties")
    if taken is None or not isinstance(properties, dict) or all(map(taken.fullmatch, properties)):
        return form, {}
    spelled = {name: name if taken.fullmatch(name) else _spell(name) for name in properties}
    if len(set(spelled.values())) < len(spelled):
        raise ToolError(
            Kind.CONFLICT, f"parameters: two names are alike in the spelling of {label}; rename one of them"
        )
    renamed = {ours: name for name, ours in spelled.items() if ours != name}
    for ours, name in renamed.items():
        text = f"{label} does not take {name!r:.80} as a name; it is offered as {ours!r} and led back"
        losses.add(("properties", name), "properties", text)
    written: Json = {
        **form,
        "properties": {spelled[name]: _introduce(inner, name, spelled) for name, inner in properties.items()},
    }
    if isinstance(form.get("required"), list):
        written["required"] = [spelled.get(name, name) for name in cast("list[str]", form["required"])]
    return written, renamed


def _spell(name: str) -> str:
    import hashlib

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LETTERS]
    return f"_{re.sub(r'[^a-zA-Z0-9_]', '_', name)[:SHOWN_LETTERS]}_{digest}"


def _introduce(schema: object, name: str, spelled: Mapping[str, str]) -> object:
    if spelled[name] == name or not isinstance(schema, dict):
        return schema
    text = str(schema.get("description", ""))
    return {**schema, "description": sayings.join(text, [f"named {sayings.clean(name)}"])}
