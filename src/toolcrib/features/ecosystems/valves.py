"""Set the `Valves` of Open WebUI files to the values of the operator, and check those values.

A value `${secret:NAME}` grants that secret to the tools of that file: it is looked up for each call, passed to the process of
the call, and masked in all output.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from toolcrib.features.ecosystems.settings import EcosystemsSettings
from toolcrib.features.ecosystems.valve_fields import TOOLS, read_valves
from toolcrib.infra.settings import FILE_NAME
from toolcrib.lib.redaction import is_secret
from toolcrib.lib.schema import accepts
from toolcrib.model.errors import Cure, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolcrib.core.resources import Resources
    from toolcrib.features.ecosystems.valve_fields import ValveField
    from toolcrib.model.tool import Script, Tool

SECRET = re.compile(r"\$\{secret:([A-Za-z_][A-Za-z0-9_]*)\}")
SECRET_MARK = "${secret:"  # noqa: S105 - the prefix of a reference
KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a table",
}
TYPES = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "a table",
}


class Valves:
    """The valves of all files, as set by the operator."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._given = resources.settings.table(EcosystemsSettings).valves

    def values(self, tool: Tool) -> dict[str, object]:
        """The values for a call of the tool, secrets as Secret; raises ToolError for an invalid or missing one."""
        script = _open_webui(tool)
        if script is None or script.path.stem not in self._given:
            return {}
        file = script.path.stem
        if problem := next(self._misfits(file, script), None):
            raise ToolError(Kind.PERMANENT, f"{tool.name} cannot be called: {problem}")
        return {field: self._value(tool, field, given) for field, given in self._given[file].items()}

    def problems(self, tools: Iterable[Tool]) -> list[ToolError]:
        """The problems of the values, each with its place and cure."""
        tools = list(tools)
        scripts = {script.path.stem: script for tool in tools if (script := _open_webui(tool)) is not None}
        found: list[str] = []
        for file in self._given:
            if file in scripts:
                found += self._misfits(file, scripts[file])
            else:
                found.append(f"{_place(file)}: {_unknown_file(file, scripts, tools)}")
        return [ToolError(Kind.VALIDATION, problem) for problem in found]

    def missing(self, tool: Tool) -> list[str]:
        """The valves that need a value and have none, each with its cure."""
        script = _open_webui(tool)
        valves = None if script is None else read_valves(script.code)
        if script is None or valves is None:
            return []
        file, found = script.path.stem, []
        given = self._given.get(file, {})
        for name, field in valves.fields.items():
            needs_secret = is_secret(name) and _takes_text(field)
            if name in given:
                found += self._missing_secret(given[name])
            elif field.is_required or (needs_secret and field.default in ("", None)):
                value = f'"${{secret:{name.upper()}}}"' if needs_secret else "…"
                cure = f"write in {FILE_NAME}: [ecosystems] valves.{file}.{name} = {value}"
                store = f", and store it with: crib secret set {name.upper()}" if needs_secret else ""
                found.append(
                    f"a value of its valve {name}, which is {'not set' if field.is_required else 'empty'}; {cure}{store}"
                )
        return found

    def _missing_secret(self, given: object) -> list[str]:
        name = _secret_name(given)
        if not name or self._resources.data.secrets.get(name) is not None:
            return []
        return [f"the secret {name}, which is not there; run: crib secret set {name}"]

    def _value(self, tool: Tool, field: str, given: object) -> object:
        name = _secret_name(given)
        if not name:
            return given
        secret = self._resources.data.secrets.get(name)
        if secret is None:
            message = f"{tool.name} needs the secret {name} for its valve {field}, which is not there"
            cure = Cure(f"run: crib secret set {name}")
            raise ToolError(Kind.CAPABILITY_MISSING, message, cure=cure, details={"missing": [name]})
        return secret

    def _misfits(self, file: str, script: Script) -> Iterator[str]:
        """Why values of a file are invalid. The values themselves are not shown: one may be a key."""
        valves = read_valves(script.code)
        if valves is None:
            yield f"{_place(file)}: {script.path.name} declares no class {TOOLS} with Valves; remove the values"
            return
        for name, given in self._given[file].items():
            field = valves.fields.get(name)
            place = f"{_place(file)}.{name:.80}"
            if isinstance(given, str) and SECRET_MARK in given and not _secret_name(given):
                yield f"{place}: a secret is a value as a whole; write \"${{secret:NAME}}\" with a name of letters, digits and '_'"
            elif field is None and valves.are_all:
                near = next(iter(difflib.get_close_matches(name, valves.fields, n=1)), "")
                known = ", ".join(list(valves.fields)[:20]) or "none"
                cure = f"did you mean {near}?" if near else f"known are {known}"
                yield f"{place}: {script.path.name} has no such valve; {cure}"
            elif field is not None and not _fits(field, given):
                yield f"{place}: {script.path.name} takes {_wanted(field)} there, not {_shown(given)}; change the value"


def _open_webui(tool: Tool) -> Script | None:
    """The file of a tool that is a method of the class `Tools`."""
    script = tool.script
    if script is None or (script.binding.get("kind"), script.binding.get("name")) != ("class", TOOLS):
        return None
    return script


def _place(file: str) -> str:
    return f"{FILE_NAME}: ecosystems.valves.{file:.80}"


def _unknown_file(file: str, scripts: Mapping[str, Script], tools: Iterable[Tool]) -> str:
    what = f"no file of Open WebUI is called {file:.80}.py"
    own = next((script for tool in tools if tool.name == file and (script := _open_webui(tool)) is not None), None)
    if own is not None:
        return f"{what}; valves belong to a file, so write ecosystems.valves.{own.path.stem}"
    near = next(iter(difflib.get_close_matches(file, scripts, n=1)), "")
    return (
        f"{what}; did you mean {near}?" if near else f"{what}; add the file with: crib add FILE, or remove the values"
    )


def _secret_name(given: object) -> str:
    found = SECRET.fullmatch(given) if isinstance(given, str) else None
    return "" if found is None else found[1]


def _fits(field: ValveField, given: object) -> bool:
    if _secret_name(given):
        return _takes_text(field)
    try:
        return accepts(dict(field.schema), given, dict(field.definitions))
    except (ToolError, ValueError):
        return True  # without a valid schema the class of the file validates the value


def _takes_text(field: ValveField) -> bool:
    """Whether a string may be a valid value; the string itself, a secret, is only known when the tool is called."""
    schemas = field.schema.get("anyOf", [field.schema])
    types = (
        [schema.get("type", "string") for schema in schemas if isinstance(schema, dict)]
        if isinstance(schemas, list)
        else []
    )
    return any(kind == "string" or (isinstance(kind, list) and "string" in kind) for kind in types)


def _wanted(field: ValveField) -> str:
    schemas = field.schema.get("anyOf", [field.schema])
    kinds = [schema.get("type") for schema in schemas if isinstance(schema, dict)] if isinstance(schemas, list) else []
    words = [TYPES[kind] for kind in kinds if isinstance(kind, str) and kind in TYPES]
    rules = {
        word: rule
        for word, rule in field.schema.items()
        if word in {"enum", "minimum", "maximum", "pattern", "minLength", "maxLength"}
    }
    text = " or ".join(words) or "another value"
    return f"{text} ({', '.join(f'{word} {rule!s:.60}' for word, rule in rules.items())})" if rules else text


def _shown(given: object) -> str:
    return "a secret" if _secret_name(given) else KINDS.get(type(given), "nothing")
