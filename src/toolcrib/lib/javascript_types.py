"""Derive JSON Schemas of JavaScript functions from TypeScript annotations, JSDoc, defaults and property accesses."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.lib.javascript_source import JavaScript
from toolcrib.lib.javascript_tokens import NAME, NUMBER, STRING, NotLiteralError
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from toolcrib.lib.javascript_source import Function

    Schema = dict[str, object]

# A parameter with one of these names takes one object with all arguments.
WHOLE = frozenset(
    {"args", "params", "input", "inputs", "options", "opts", "argv", "data", "payload", "props", "request", "req"}
    | {"body", "parameters", "arguments_", "_args", "kwargs", "toolInput", "toolArgs", "config", "settings"}
)
# Parameters that the platform provides, not the caller.
CONTEXT = frozenset({"context", "ctx", "_context", "_ctx", "extra", "_extra"})
# Properties of every string, array or object, which are not arguments.
BUILT_IN = frozenset({"length", "constructor", "prototype", "toString", "hasOwnProperty", "size"})
SIMPLE = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "object": {"type": "object"},
    "array": {"type": "array"},
    "any": {},
    "unknown": {},
    "*": {},
    "null": {"type": "null"},
    "undefined": {"type": "null"},
    "void": {"type": "null"},
    "String": {"type": "string"},
    "Number": {"type": "number"},
    "Boolean": {"type": "boolean"},
    "Object": {"type": "object"},
    "Array": {"type": "array"},
    "URL": {"type": "string", "format": "uri"},
    "Date": {"type": "string"},
    "bigint": {"type": "integer"},
    "BigInt": {"type": "integer"},
}
# Types that a JSON value is converted to before the function gets it.
REVIVED = {"Date": "date", "bigint": "bigint", "BigInt": "bigint", "URL": "url", "Set": "set", "Map": "map"}
LISTS = frozenset({"Array", "ReadonlyArray", "Set"})
MAPPINGS = frozenset({"Record", "Map"})
UNMAKEABLE = frozenset({"Buffer", "Uint8Array", "Function", "Promise", "Symbol", "symbol", "RegExp", "WeakMap"})
MAX_DEPTH = 12
PARAM = re.compile(
    r"@param\s+(?:\{([^\n{}]*(?:\{[^{}]*\}[^\n{}]*)*)\}\s*)?(\[)?([\w$.]+)(?:=([^\]\n]*))?\]?[ \t]*-?[ \t]*([^\n@]*)"
)


class TypeProblemError(Exception):
    """A type that cannot be made from JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """How a function takes its arguments.

    `style` is `whole` (one object with all of them) or `names` (positional). `revive` maps names of arguments to the types
    that their JSON values are converted to. `warnings` are about the line of the function.
    """

    schema: Schema
    style: str = "names"
    names: tuple[str, ...] = ()
    rest: str = ""
    revive: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def to_config(self) -> dict[str, object]:
        """The calling convention as JSON, for the process that calls the function."""
        return {"style": self.style, "names": [*self.names], "rest": self.rest, "revive": dict(self.revive)}


@dataclass(slots=True)
class _Parameter:
    name: str
    schema: Schema = field(default_factory=dict)
    required: bool = True


@dataclass(frozen=True, slots=True)
class _Doc:
    type: str
    optional: bool
    default: str
    text: str


def read_signature(code: JavaScript, function: Function) -> Signature:
    """The signature of a function; raises TypeProblemError if it cannot be called with JSON."""
    return _Reader(code, function).read()


def summary_of(comment: str) -> str:
    """The first paragraph of a comment, without its tags."""
    lines = [
        re.sub(r"^\s*/?\*+/?|^\s*//+", "", line).strip().removesuffix("*/").strip() for line in comment.split("\n")
    ]
    words: list[str] = []
    for line in lines:
        if line.startswith("@description "):
            return line.removeprefix("@description ").strip()
        if line.startswith("@") or (not line and words):
            break
        words += [line] if line else []
    return " ".join(words)[:1000]


class _Reader:
    def __init__(self, code: JavaScript, function: Function) -> None:
        self._code = code
        self._function = function
        self._docs = _read_docs(function.comment)
        self._revive: dict[str, str] = {}
        self._warnings: list[str] = []

    def read(self) -> Signature:
        code = self._code
        parts = code.split(self._function.parameters)
        parts = [part for part in parts if code[part.start].text not in CONTEXT and code[part.start].text != "this"]
        if not parts:
            return Signature(schema=_closed([]))
        if len(parts) == 1 and code[parts[0].start].text == "{":
            return self._destructured(parts[0])
        if len(parts) == 1 and self._takes_all(parts[0]):
            return self._whole(parts[0])
        return self._by_names(parts)

    def _destructured(self, part: range) -> Signature:
        code = self._code
        close = code.partners[part.start]
        annotation, default = self._tail(close + 1, part.stop)
        found = self._pattern(part.start, annotation)
        for parameter in found.values():
            self._document(parameter, self._docs)
        is_open = any(code[inner.start].text == "..." for inner in code.split(code.inside(part.start)))
        if default is not None:
            self._take_defaults(found, default)
        return self._signature(list(found.values()), "whole", is_open=is_open)

    def _pattern(self, opening: int, annotation: range | None) -> dict[str, _Parameter]:
        """The members of a destructuring pattern, with the types of the annotation."""
        code = self._code
        typed = {} if annotation is None else self._members(annotation, 0)
        found: dict[str, _Parameter] = {}
        for inner in code.split(code.inside(opening)):
            key = code[inner.start]
            if key.kind not in {NAME, STRING} or key.text == "...":
                continue
            name = key.value if key.kind == STRING else key.text
            known = typed.get(name)
            parameter = _Parameter(
                name, dict(known.schema) if known else {}, required=known.required if known else True
            )
            equals = next((at for at in inner if code[at].text == "=" and code[at].kind != STRING), None)
            if equals is not None:
                self._default(parameter, range(equals + 1, inner.stop))
            found[name] = parameter
        for name, known in typed.items():
            found.setdefault(name, known)
        return found

    def _take_defaults(self, found: dict[str, _Parameter], default: range) -> None:
        for name, value in self._code.entries(default).items():
            if name in found:
                self._default(found[name], value)

    def _takes_all(self, part: range) -> bool:
        """Whether the only parameter is an object with all arguments."""
        code = self._code
        name = code[part.start].text
        if code[part.start].text == "...":
            return False
        annotation, _ = self._tail(part.start + 1, part.stop)
        if annotation is not None:
            return bool(self._members(annotation, 0)) or (name in WHOLE and not self._is_list(annotation))
        if name in WHOLE or any(known.startswith(f"{name}.") for known in self._docs):
            return True
        if name in self._docs and self._docs[name].type.strip() not in {"", "object", "Object"}:
            return False
        return bool(self._read_properties(name))

    def _is_list(self, annotation: range) -> bool:
        texts = self._code.texts(annotation)
        return (
            texts[-2:] == ["[", "]"]
            or texts[:1] == ["Array"]
            or (texts[0] in SIMPLE and texts[0] not in {"any", "object"})
        )

    def _whole(self, part: range) -> Signature:
        code = self._code
        name = code[part.start].text
        annotation, default = self._tail(part.start + 1, part.stop)
        found = {} if annotation is None else dict(self._members(annotation, 0))
        docs = {key.removeprefix(f"{name}."): doc for key, doc in self._docs.items() if key.startswith(f"{name}.")}
        for key in docs:
            found.setdefault(key, _Parameter(key))
        for key, is_optional in self._read_properties(name).items():
            if key not in found and not docs and annotation is None:
                found[key] = _Parameter(key, required=not is_optional)
        for parameter in found.values():
            self._document(parameter, docs)
        if default is not None:
            self._take_defaults(found, default)
        if name not in WHOLE and annotation is None and not docs:
            self._warnings.append(
                f"{self._function.name} is given all arguments as {name}, whose properties it reads; "
                f"write ({{ {', '.join(found)} }}) as its parameters"
            )
        return self._signature(list(found.values()), "whole", is_open=not found)

    def _by_names(self, parts: list[range]) -> Signature:
        code = self._code
        found: list[_Parameter] = []
        rest = ""
        for part in parts:
            start = part.start
            if code[start].text == "...":
                rest = code[start + 1].text
                annotation, _ = self._tail(start + 2, part.stop)
                schema = self._type(annotation, 0, rest) if annotation else {}
                items = schema.get("items", {}) if schema else {}
                parameter = _Parameter(rest, {"type": "array", "items": items}, required=False)
                self._document(parameter, self._docs)
                parameter.schema = {"type": "array", **parameter.schema}
                found.append(parameter)
                continue
            if code[start].kind != NAME:
                raise TypeProblemError("takes a pattern beside other parameters; give it one object, or plain names")
            while code[start].text in {"public", "private", "readonly"}:
                start += 1
            parameter = _Parameter(code[start].text)
            is_optional = code[start + 1].text == "?"
            annotation, default = self._tail(start + 1, part.stop)
            if annotation is not None:
                parameter.schema = self._type(annotation, 0, parameter.name)
            if is_optional or (annotation is not None and _may_be_missing(code.texts(annotation))):
                parameter.required = False
            self._document(parameter, self._docs)
            if default is not None:
                self._default(parameter, default)
            found.append(parameter)
        names = tuple(parameter.name for parameter in found if parameter.name != rest)
        signature = self._signature(found, "names")
        return Signature(
            schema=signature.schema,
            style="names",
            names=names,
            rest=rest,
            revive=signature.revive,
            warnings=signature.warnings,
        )

    def _signature(self, found: list[_Parameter], style: str, *, is_open: bool = False) -> Signature:
        schema = _closed(found)
        if is_open:
            del schema["additionalProperties"]
        revive = {name: how for name, how in self._revive.items() if name in {one.name for one in found}}
        return Signature(schema=schema, style=style, revive=revive, warnings=tuple(self._warnings))

    def _tail(self, start: int, stop: int) -> tuple[range | None, range | None]:
        """The annotation and the default after a name or a pattern."""
        code = self._code
        index = start + (code[start].text == "?")
        equals = stop
        at = index
        while at < stop:
            if code[at].text == "=" and code[at].kind != STRING:
                equals = at
                break
            at = code.partners.get(at, at) + 1
        annotation = range(index + 1, equals) if code[index].text == ":" and index < equals else None
        return annotation, range(equals + 1, stop) if equals < stop else None

    def _default(self, parameter: _Parameter, value: range) -> None:
        parameter.required = False
        try:
            default = self._code.literal(value)
        except NotLiteralError:
            return
        if default is None:
            return
        if not parameter.schema:
            kinds = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
            parameter.schema = {"type": kinds[type(default)]}
        if parameter.name not in self._revive:
            parameter.schema = {**parameter.schema, "default": default}

    def _document(self, parameter: _Parameter, docs: dict[str, _Doc]) -> None:
        doc = docs.get(parameter.name)
        if doc is None:
            return
        if not parameter.schema and doc.type:
            parameter.schema = self._doc_type(doc.type, parameter.name)
        if doc.optional:
            parameter.required = False
        if doc.text:
            parameter.schema = {**parameter.schema, "description": doc.text[:1000]}

    def _doc_type(self, text: str, name: str) -> Schema:
        """The schema of a JSDoc type, whose syntax is close to that of TypeScript."""
        plain = text.strip().rstrip("=").lstrip("?!")
        try:
            code = JavaScript(re.sub(r"\.<", "<", plain))
        except ToolError:
            return {}
        reader = _Reader(code, self._function)
        schema = reader._type(range(len(code.tokens)), 0, name)
        self._revive |= reader._revive
        return schema

    def _read_properties(self, name: str) -> dict[str, bool]:
        """The properties of a parameter that the body reads, each with whether it is optional."""
        code, body = self._code, self._function.body
        found: dict[str, bool] = {}
        for index in code.find(name, where=body):
            if code[index].kind != NAME or code[index - 1].text in {".", "?."}:
                continue
            if code[index + 1].text in {".", "?."} and code[index + 2].kind == NAME:
                key, behind = code[index + 2].text, code[index + 3].text
                if behind == "(" or key in BUILT_IN or (behind == "=" and code[index + 3].kind != STRING):
                    continue
                optional = behind in {"||", "??"} or code[index + 1].text == "?."
                found[key] = found.get(key, False) or optional
            elif code[index - 1].text == "=" and code[index - 2].text == "}":
                opening = code.openings.get(index - 2)
                if opening is not None:
                    members = self._pattern(opening, None)
                    found |= {key: not parameter.required for key, parameter in members.items()}
        return found

    def _members(self, annotation: range, depth: int) -> dict[str, _Parameter]:
        """The members of an object type; empty for any other type."""
        code = self._code
        where = self._resolve(annotation)
        if depth > MAX_DEPTH or code[where.start].text != "{" or code.partners.get(where.start) != where.stop - 1:
            return {}
        found: dict[str, _Parameter] = {}
        inner = code.inside(where.start)
        for statement in self._split_members(inner):
            start = statement.start + (code[statement.start].text == "readonly")
            key = code[start]
            if key.kind not in {NAME, STRING}:
                continue
            name = key.value if key.kind == STRING else key.text
            is_optional = code[start + 1].text == "?"
            colon = start + 1 + is_optional
            if code[colon].text != ":":
                continue
            kind = range(colon + 1, statement.stop)
            parameter = _Parameter(name, self._type(kind, depth + 1, name if depth == 0 else ""))
            parameter.required = not is_optional and not _may_be_missing(code.texts(kind))
            comment = code.comments.get(statement.start, "")
            if comment:
                text = summary_of(comment)
                parameter.schema = {**parameter.schema, **({"description": text} if text else {})}
            found[name] = parameter
        return found

    def _split_members(self, inner: range) -> list[range]:
        """Split an object type into members, which end at a semicolon, a comma, or a line end."""
        code = self._code
        parts, start, index = [], inner.start, inner.start
        while index < inner.stop:
            token = code[index]
            last = code.partners.get(index, index)
            following = code[last + 1]
            ends = token.text in {";", ","} and token.kind != STRING
            breaks = (
                following.line > code[last].line
                and code[last].text not in {"|", "&", ":"}
                and following.text not in {"|", "&"}
            )
            if ends:
                parts.append(range(start, index))
                start = index + 1
            elif breaks and last + 1 < inner.stop:
                stop = last + 1
                parts.append(range(start, stop))
                start = stop + (following.text in {";", ","})
                index = start
                continue
            index = last + 1
        parts.append(range(start, inner.stop))
        return [part for part in parts if len(part)]

    def _resolve(self, annotation: range) -> range:
        """The definition of a type that the file names; any other type unchanged."""
        code = self._code
        for _ in range(MAX_DEPTH):
            if len(annotation) != 1 or code[annotation.start].text not in code.found.types:
                return annotation
            annotation = code.found.types[code[annotation.start].text]
        return annotation

    def _type(self, annotation: range, depth: int, name: str = "") -> Schema:  # noqa: C901, PLR0911 - one case per form
        """The schema of a type; an unknown type accepts any value."""
        code = self._code
        where = self._resolve(annotation)
        if not len(where) or depth > MAX_DEPTH:
            return {}
        if code[where.start].text == "|":
            where = range(where.start + 1, where.stop)
        union = code.split(where, "|")
        if len(union) > 1:
            return self._union(union, depth, name)
        first, last = code[where.start], code[where.stop - 1]
        if last.text == "]" and code[where.stop - 2].text == "[":
            return {"type": "array", "items": self._type(range(where.start, where.stop - 2), depth + 1)}
        if first.text == "readonly":
            return self._type(range(where.start + 1, where.stop), depth + 1, name)
        if first.text == "(" and code.partners.get(where.start) == where.stop - 1:
            return self._type(code.inside(where.start), depth + 1, name)
        if first.text == "{":
            members = self._members(where, depth)
            return _closed(list(members.values())) if members else {"type": "object"}
        if first.text == "[":
            return {"type": "array"}
        if len(where) == 1:
            return self._single(first.kind, first.text, first.value, name)
        if code[where.start + 1].text == "<":
            return self._generic(where, depth, name)
        return {}

    def _single(self, kind: str, text: str, value: str, name: str) -> Schema:
        if kind == STRING:
            return {"const": value}
        if kind == NUMBER:
            return {"const": float(text) if "." in text else int(text)} if text.replace(".", "").isdigit() else {}
        if text in {"true", "false"}:
            return {"const": text == "true"}
        if text in UNMAKEABLE:
            raise TypeProblemError(f"takes a {text}, which no JSON makes; take text or numbers, and make it inside")
        if text in REVIVED:
            if not name:
                raise TypeProblemError(f"takes a {text} inside of a value; take text, and make it inside")
            self._revive[name] = REVIVED[text]
        if (members := self._code.found.enums.get(text)) is not None:
            return self._enum(text, members)
        if text not in SIMPLE and kind == NAME:
            self._accept_any(text)
        return dict(SIMPLE.get(text, {}))

    def _accept_any(self, text: str) -> None:
        """Warn that a type is unknown, so that its values are not validated."""
        warning = f"the type {text[:80]} is not defined in this file, so any value is accepted for it; define it here"
        if warning not in self._warnings:
            self._warnings.append(warning)

    def _enum(self, name: str, members: range) -> Schema:
        """The values of the members of an enum."""
        code = self._code
        values: list[object] = []
        for part in code.split(members):
            texts = code.texts(part)
            last = code[part.stop - 1]
            if len(texts) == 1 and (not values or isinstance(values[-1], int)):
                values.append(values[-1] + 1 if values and isinstance(values[-1], int) else 0)
            elif len(texts) == len(("name", "=", "value")) and last.kind == STRING:
                values.append(last.value)
            elif len(texts) == len(("name", "=", "value")) and last.text.isdecimal():
                values.append(int(last.text))
            else:
                # A computed member, whose value is only known when the code runs.
                self._accept_any(name)
                return {}
        return {**({"type": "string"} if all(isinstance(one, str) for one in values) else {}), "enum": values}

    def _generic(self, where: range, depth: int, name: str) -> Schema:
        code = self._code
        outer = code[where.start].text
        inner = code.split(range(where.start + 2, where.stop - 1))
        if outer in UNMAKEABLE:
            raise TypeProblemError(f"takes a {outer}, which no JSON makes; take text or numbers, and make it inside")
        if outer in REVIVED and not name:
            raise TypeProblemError(f"takes a {outer} inside of a value; take a list or an object, and make it inside")
        if outer in REVIVED:
            self._revive[name] = REVIVED[outer]
        if outer in LISTS:
            return {"type": "array", "items": self._type(inner[0], depth + 1) if inner else {}}
        if outer in MAPPINGS:
            values = self._type(inner[1], depth + 1) if len(inner) > 1 else {}
            return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
        if outer in {"Partial", "Required", "Readonly"} and inner:
            schema = self._type(inner[0], depth + 1, name)
            return {**schema, "required": []} if outer == "Partial" and "properties" in schema else schema
        return {}

    def _union(self, parts: list[range], depth: int, name: str) -> Schema:
        members = [self._type(part, depth + 1, name) for part in parts]
        undefined = [self._code.texts(part) == ["undefined"] for part in parts]
        members = [member for member, is_absent in zip(members, undefined, strict=True) if not is_absent]
        if len(members) == 1:
            return members[0]
        if all(set(member) == {"const"} for member in members):
            values = [member["const"] for member in members]
            kinds = {type(value) for value in values}
            return {**({"type": "string"} if kinds == {str} else {}), "enum": values}
        if any(not member for member in members):
            return {}
        types = [member.get("type") for member in members]
        if all(set(member) == {"type"} and isinstance(member["type"], str) for member in members):
            return {"type": list(dict.fromkeys(str(kind) for kind in types))}
        return {"anyOf": members}


def _may_be_missing(texts: list[str]) -> bool:
    return "undefined" in texts and "|" in texts


def _closed(found: list[_Parameter]) -> Schema:
    return {
        "type": "object",
        "properties": {parameter.name: parameter.schema for parameter in found},
        "required": [parameter.name for parameter in found if parameter.required],
        "additionalProperties": False,
    }


def _read_docs(comment: str) -> dict[str, _Doc]:
    lines = "\n".join(re.sub(r"^\s*/?\*+/?[ \t]?", "", line) for line in comment[:20_000].split("\n"))
    return {
        found[3]: _Doc(
            type=found[1] or "",
            optional=bool(found[2]) or (found[1] or "").endswith("="),
            default=found[4] or "",
            text=found[5].strip().removesuffix("*/").strip(),
        )
        for found in PARAM.finditer(lines)
    }
