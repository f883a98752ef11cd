"""Read the fields of `Valves` in a class `Tools` of Open WebUI, from the syntax tree."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from toolcrib.features.ecosystems.file_names import FileNames
from toolcrib.features.ecosystems.tool_objects import is_required_field
from toolcrib.lib.python_hints import OF_DEFAULTS, HintError, SyntaxHints
from toolcrib.lib.python_source import literal, parse_python
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOLS = "Tools"
VALVES = "Valves"
# Base classes that add no fields to a class of valves.
KNOWN_BASES = frozenset({"object", "pydantic.BaseModel", "pydantic.main.BaseModel", "pydantic.v1.BaseModel"})
MAX_FIELDS = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class ValveField:
    """One field: its schema and its default; NotImplemented for a default that is only known at run time."""

    schema: Mapping[str, object]
    definitions: Mapping[str, object]
    default: object
    is_required: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ValveFields:
    """The fields by name. Unless they `are_all`, there may be more that the file does not declare."""

    fields: Mapping[str, ValveField]
    are_all: bool


@lru_cache(maxsize=256)
def read_valves(code: bytes) -> ValveFields | None:
    """The fields of the file's valves; None if it declares none."""
    if VALVES.encode() not in code:
        return None
    try:
        module = parse_python(code, VALVES)
    except ToolError:
        return None  # reported by the format
    names = FileNames(module)
    tools = names.classes.get(TOOLS)
    inner = [] if tools is None else [item for item in tools.body if isinstance(item, ast.ClassDef)]
    valves = next((item for item in inner if item.name == VALVES), None)
    if valves is None:
        return None
    classes = names.lineage(valves)
    known = {each.name for each in classes} | KNOWN_BASES
    are_all = names.bases(valves) <= known and not any(map(_takes_others, classes))
    # Inner classes refer to each other by their bare names.
    hints = SyntaxHints(ast.Module([*module.body, *(item for item in inner if item is not valves)], []))
    fields: dict[str, ValveField] = {}
    for each in reversed(classes):
        for item in each.body[:MAX_FIELDS]:
            fields |= _read_field(item, names, hints)
    return ValveFields(fields=fields, are_all=are_all)


def _takes_others(node: ast.ClassDef) -> bool:
    """Whether a model has a configuration, which may allow extra fields or aliases."""
    targets = (target for item in node.body if isinstance(item, ast.Assign) for target in item.targets)
    is_configured = any(isinstance(target, ast.Name) and target.id == "model_config" for target in targets)
    has_class = any(isinstance(item, ast.ClassDef) and item.name == "Config" for item in node.body)
    return is_configured or has_class or any("alias" in ast.unparse(item) for item in node.body)


def _read_field(item: ast.stmt, names: FileNames, hints: SyntaxHints) -> dict[str, ValveField]:
    target: ast.expr
    hint: ast.expr | None
    if isinstance(item, ast.AnnAssign):
        target, hint = item.target, item.annotation
    elif isinstance(item, ast.Assign) and len(item.targets) == 1:
        target, hint = item.targets[0], None
    else:
        return {}
    if not isinstance(target, ast.Name) or target.id.startswith("_") or target.id == "model_config":
        return {}
    if hint is not None and ast.unparse(hint).partition("[")[0].endswith("ClassVar"):
        return {}
    written = item.value
    default = _default(written, names)
    schema: Mapping[str, object] = {} if hint is not None else OF_DEFAULTS.get(type(default), {})
    if hint is not None:
        schema = _read_hint(hint, written, hints)
    is_required = hint is not None and (written is None or is_required_field(written))
    field = ValveField(schema=schema, definitions=hints.definitions, default=default, is_required=is_required)
    return {target.id: field}


def _read_hint(hint: ast.expr, written: ast.expr | None, hints: SyntaxHints) -> Mapping[str, object]:
    if isinstance(written, ast.Call):
        parts = ast.Tuple([hint, written], ast.Load())
        hint = ast.copy_location(ast.Subscript(ast.Name("Annotated", ast.Load()), parts, ast.Load()), hint)
    try:
        return hints.read(ast.fix_missing_locations(hint))
    except HintError:
        return {}  # accepts any value; the class of the file validates it


def _default(written: ast.expr | None, names: FileNames) -> object:
    if not isinstance(written, ast.Call):
        return NotImplemented if written is None else names.literal(written)
    said = next((word.value for word in written.keywords if word.arg == "default"), None)
    value = said or (written.args[0] if written.args else None)
    return NotImplemented if value is None else literal(value)
