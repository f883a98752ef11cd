"""Convert documents of other programs to the stored form, with a warning that says how to write them."""

from __future__ import annotations

from collections.abc import Mapping

from toolcrib.model.errors import Kind, ToolError

IMPLEMENTATIONS = {"goImpl": "go", "httpImpl": "http"}
# The parts of a request and a response that stand apart, and what each is called in `impl`.
REQUEST = {
    **{name: name for name in ("method", "urlTemplate", "headers", "query", "bodyTemplate", "timeoutMs")},
    "body": "bodyTemplate",
}
RESPONSE = {
    **{name: name for name in ("successCodes", "responseEncoding", "extractExpr", "errorMode")},
    "encoding": "responseEncoding",
    "selector": "extractExpr",
}
GROUPS = {"request": REQUEST, "response": RESPONSE}


def to_stored_form(document: Mapping[str, object], place: str) -> tuple[dict[str, object], list[str]]:
    """The document with `impl`, and the warnings; raises ToolError for what is not certain."""
    found = dict(document)
    written = [name for name in IMPLEMENTATIONS if name in found]
    if not written:
        return found, []
    if len(written) > 1 or "impl" in found:
        names = ", ".join([*written, *(["impl"] if "impl" in found else [])])
        raise _refusal(place, f"{names} stand beside each other; keep the one that fits type")
    name = written[0]
    if found.get("type") != IMPLEMENTATIONS[name]:
        cure = (
            'write "impl": {"goFunc": …}' if found.get("type") == "go" else f'write "type": "{IMPLEMENTATIONS[name]}"'
        )
        message = (
            f'{name} is for tools of type "{IMPLEMENTATIONS[name]}", and this one is {found.get("type")!r:.40}; {cure}'
        )
        raise _refusal(place, message)
    implementation = found.pop(name)
    warnings = [f"{place}: {name} is read as impl; write impl"]
    if isinstance(implementation, Mapping) and not GROUPS.keys().isdisjoint(implementation):
        implementation = _flatten(implementation, f"{place}: {name}")
        warnings.append(f"{place}: {name}.request and response are read as one; write their keys directly into impl")
    return {**found, "impl": implementation}, warnings


def _flatten(implementation: Mapping[str, object], place: str) -> dict[str, object]:
    """One object of the keys of request and response; a key that is not known is refused, and never dropped."""
    flat: dict[str, object] = {name: value for name, value in implementation.items() if name not in GROUPS}
    for group, names in GROUPS.items():
        part = implementation.get(group, {})
        if not isinstance(part, Mapping):
            raise _refusal(place, f"{group} must be an object; write its keys directly into impl")
        for key, value in part.items():
            if key not in names or names[key] in flat:
                known = ", ".join(names)
                raise _refusal(
                    place, f"{group}.{key[:80]} is not known or stands twice; write {known} directly into impl"
                )
            flat[names[key]] = value
    return flat


def _refusal(place: str, text: str) -> ToolError:
    return ToolError(Kind.VALIDATION, f"{place}: {text}")
