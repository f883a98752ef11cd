"""Parse Python source, and find its imports and the classes that it defines: enums, records and models."""

from __future__ import annotations

import ast
import codecs
import re
import sys
import warnings
from typing import TYPE_CHECKING

from toolcrib.lib.documents import point_at
from toolcrib.lib.schema_structure import is_json
from toolcrib.model.errors import Kind, ToolError
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
MAX_BYTES = 256_000
ENCODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
BASE_TOOL_CURE = "name its module in modules.tools of toolcrib.toml, or use `crib run FILE`"
MAX_IMPORTS = 100

HOMES = ("typing.", "typing_extensions.", "collections.abc.", "collections.", "enum.", "dataclasses.", "types.")
ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "ReprEnum"})
RECORD_DECORATORS = frozenset(
    (
        *("dataclass", "pydantic.dataclasses.dataclass", "attr.s", "attr.attrs", "attr.dataclass", "attr.define"),
        *("attr.frozen", "attr.mutable", "attrs.define", "attrs.frozen", "attrs.mutable"),
    )
)
MODELS = frozenset({"pydantic.BaseModel", "pydantic.main.BaseModel", "pydantic.v1.BaseModel", "sqlmodel.SQLModel"})
FIELD_MAKERS = frozenset({"field", "attr.field", "attrs.field", "attr.ib", "pydantic.Field", "pydantic.fields.Field"})
SKIPPED_HINTS = frozenset({"ClassVar", "KW_ONLY", "InitVar"})
OWN_VALUES = frozenset({"__new__", "_generate_next_value_"})
MAX_BASES = 50
# Marks a member whose value is only known when the file runs.
UNKNOWN = NotImplemented


@record
class ClassField:
    """A field of a record: `key` is its name in JSON, `note` a call with constraints or a description, such as `Field(…)`.

    A field that is not `is_given` is set by the class itself, and one that is `is_written` is part of results.
    """

    name: str
    key: str
    hint: ast.expr | None
    default: ast.expr | None = None
    note: ast.Call | None = None
    is_required: bool = True
    is_given: bool = True
    is_written: bool = True


@record
class ClassKind:
    """A class of the file: `kind` is enum, record, typed dict or model, and empty for any other class."""

    name: str
    kind: str
    docstring: str | None = None
    fields: tuple[ClassField, ...] = ()
    members: tuple[tuple[str, object], ...] = ()


def literal(node: ast.expr) -> object:
    """The value of a literal, tuples as lists; NotImplemented for anything else."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return NotImplemented
    return list(value) if isinstance(value, tuple) else value


class ClassTable:
    """The names of a file: its imports, classes and aliases."""

    def __init__(self, module: ast.Module) -> None:
        self._names: dict[str, str] = {}
        self._classes: dict[str, ast.ClassDef] = {}
        self._aliases: dict[str, ast.expr] = {}
        self._known: dict[str, ClassKind] = {}
        for statement in module.body:
            self._note(statement)

    def holds(self, name: str) -> bool:
        """Whether the file imports, defines or assigns the name."""
        return name in self._names or name in self._classes or name in self._aliases

    def full_name(self, node: ast.expr) -> str:
        """The qualified name: `typing.Optional` for `t.Optional` after `import typing as t`; empty if it is not a name."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, node.id)
        holder = self.full_name(node.value) if isinstance(node, ast.Attribute) else ""
        return f"{holder}.{node.attr}" if isinstance(node, ast.Attribute) and holder else ""

    def name(self, node: ast.expr) -> str:
        """The qualified name without a module of HOMES, in which the same types have the same names."""
        name = self.full_name(node)
        if "." not in name:
            return name
        return name.removeprefix(next((home for home in HOMES if name.startswith(home)), ""))

    def find(self, node: ast.expr) -> ClassKind | None:
        """The class of the file with this name; None if there is none."""
        if not isinstance(node, ast.Name):
            return None
        if node.id not in self._known:
            made = self._classes.get(node.id)
            found = self._functional(node.id) if made is None else self._read(made)
            if found is None:
                return None
            self._known[node.id] = found
        return self._known[node.id]

    def alias(self, node: ast.expr) -> ast.expr | None:
        """The expression that the file assigns to a name; None if there is none."""
        return self._aliases.get(node.id) if isinstance(node, ast.Name) else None

    def member(self, enum: str, name: str) -> object:
        """The JSON value of an enum member of the file; UNKNOWN for anything else."""
        known = self.find(ast.Name(enum))
        if known is None or known.kind != "enum":
            return UNKNOWN
        values = dict(known.members)
        is_by_value = all(value is not UNKNOWN and not isinstance(value, list | dict) for value in values.values())
        return values.get(name, UNKNOWN) if is_by_value else name if name in values else UNKNOWN

    def _note(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self._note_import(statement)
        elif isinstance(statement, ast.ClassDef):
            self._classes[statement.name] = statement
        elif isinstance(statement, ast.Assign) or type(statement).__name__ in {"AnnAssign", "TypeAlias"}:
            self._note_alias(statement)
        elif isinstance(statement, ast.If | ast.Try):
            # Imports for type checkers, for other versions of Python, or of optional packages.
            for inner in statement.body:
                if isinstance(inner, ast.Import | ast.ImportFrom | ast.ClassDef):
                    self._note(inner)

    def _note_alias(self, statement: Any) -> None:
        """Record the value of a name that is assigned, with or without a hint, or defined by a `type` statement."""
        targets = getattr(statement, "targets", None) or [getattr(statement, "target", None) or statement.name]
        if len(targets) == 1 and isinstance(targets[0], ast.Name) and statement.value is not None:
            self._aliases[targets[0].id] = statement.value

    def _note_import(self, statement: ast.Import | ast.ImportFrom) -> None:
        home = f"{'.' * statement.level}{statement.module or ''}." if isinstance(statement, ast.ImportFrom) else ""
        for alias in statement.names:
            if home or alias.asname:
                self._names[alias.asname or alias.name] = home + alias.name
            else:
                package = alias.name.partition(".")[0]
                self._names[package] = package

    def _read(self, node: ast.ClassDef) -> ClassKind:
        bases = self._bases(node)
        names = {self.name(base) for known in bases for base in known.bases}
        docstring = ast.get_docstring(node, clean=False)
        if names & ENUMS:
            return ClassKind(
                name=node.name, kind="enum", docstring=docstring, members=tuple(self._members(node, names))
            )
        kind = self._kind(bases, {self.full_name(base) for known in bases for base in known.bases}, names)
        fields = {field.name: field for known in bases for field in self._fields(known, kind)} if kind else {}
        return ClassKind(name=node.name, kind=kind, docstring=docstring, fields=tuple(fields.values()))

    def _kind(self, bases: list[ast.ClassDef], full_names: set[str], names: set[str]) -> str:
        if "TypedDict" in names:
            return "typed dict"
        if full_names & MODELS:
            return "model"
        decorators = {
            self.name(item.func if isinstance(item, ast.Call) else item)
            for known in bases
            for item in known.decorator_list
        }
        return "record" if decorators & RECORD_DECORATORS or "NamedTuple" in names else ""

    def _bases(self, node: ast.ClassDef) -> list[ast.ClassDef]:
        """The base classes that the file defines, and then the class itself, each once, in the order of their fields."""
        found: dict[str, ast.ClassDef] = {}
        seen: set[str] = set()

        def visit(known: ast.ClassDef) -> None:
            if known.name in seen or len(seen) > MAX_BASES:
                return
            seen.add(known.name)
            # In a TypedDict the fields of the first base come first, in any other class those of the last base.
            bases = known.bases if any(self.name(base) == "TypedDict" for base in known.bases) else known.bases[::-1]
            for base in bases:
                if isinstance(base, ast.Name) and base.id in self._classes:
                    visit(self._classes[base.id])
            found[known.name] = known

        visit(node)
        return list(found.values())

    def _members(self, node: ast.ClassDef, bases: set[str]) -> Iterator[tuple[str, object]]:
        """The members of an enum with their values, without aliases."""
        methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        is_open = not methods & OWN_VALUES
        seen: list[object] = []
        for item in node.body:
            target = item.targets[0] if isinstance(item, ast.Assign) and len(item.targets) == 1 else None
            if not isinstance(target, ast.Name) or not isinstance(item, ast.Assign) or target.id.startswith("_"):
                continue
            value = self._member_value(item.value, target.id, bases, seen) if is_open else UNKNOWN
            if value is not UNKNOWN and any(value == known and type(value) is type(known) for known in seen):
                continue
            seen.append(value)
            yield target.id, value

    def _member_value(self, node: ast.expr, name: str, bases: set[str], seen: list[object]) -> object:
        if not isinstance(node, ast.Call) or self.name(node.func) != "auto":
            value = literal(node)
            return value if is_json(value) else UNKNOWN
        if "StrEnum" in bases:
            return name.lower()
        if bases & {"Flag", "IntFlag"}:
            is_plain = seen == [2**place for place in range(len(seen))]
            return 2 ** len(seen) if is_plain else UNKNOWN
        if "str" in bases or any(type(value) is not int for value in seen):
            return UNKNOWN
        # `auto` continues from the highest value since Python 3.13, before that from the last one.
        numbers = [value for value in seen if isinstance(value, int)]
        return UNKNOWN if numbers and numbers[-1] != max(numbers) else (numbers[-1] + 1 if numbers else 1)

    def _fields(self, node: ast.ClassDef, kind: str) -> Iterator[ClassField]:
        total = not any(word.arg == "total" and literal(word.value) is False for word in node.keywords)
        for item in node.body:
            if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
                continue
            mark = item.annotation.value if isinstance(item.annotation, ast.Subscript) else item.annotation
            word = self.name(mark)
            if word in SKIPPED_HINTS or (kind == "model" and item.target.id.startswith("_")):
                continue
            if kind == "typed dict":
                required = word == "Required" or (total and word != "NotRequired")
                yield ClassField(name=item.target.id, key=item.target.id, hint=item.annotation, is_required=required)
            else:
                yield self._field(item.target.id, item.annotation, item.value)

    def _field(self, name: str, hint: ast.expr, value: ast.expr | None) -> ClassField:
        """A field with its default: a value, or a call such as `field(default=…)` and `Field(…, ge=0)`."""
        if not isinstance(value, ast.Call) or self.name(value.func) not in FIELD_MAKERS:
            return ClassField(name=name, key=name, hint=hint, default=value, is_required=value is None)
        said = {word.arg: word.value for word in value.keywords if word.arg}
        default = said.get("default") or (value.args[0] if value.args else None)
        if isinstance(default, ast.Constant) and default.value is Ellipsis:
            default = None
        is_given = "init" not in said or literal(said["init"]) is not False
        alias = (
            literal(said[word]) if (word := next((w for w in ("validation_alias", "alias") if w in said), "")) else name
        )
        return ClassField(
            name=name,
            key=alias if isinstance(alias, str) else name,
            hint=hint,
            default=default,
            note=_with_metadata(value),
            is_required=default is None and not said.keys() & {"default_factory", "factory", "default"},
            is_given=is_given,
            is_written=is_given or not name.startswith("_"),
        )

    def _functional(self, name: str) -> ClassKind | None:
        """A class that is created by a call: `namedtuple("P", "x y")`, `TypedDict("P", {…})`, `Enum("P", "A B")`."""
        call = self._aliases.get(name)
        if not isinstance(call, ast.Call) or len(call.args) < 2:  # noqa: PLR2004 - the name and the rest
            return None
        maker, content = self.name(call.func), call.args[1]
        if maker in {"namedtuple", "NamedTuple"}:
            return ClassKind(name=name, kind="record", fields=tuple(_tuple_fields(content, call)))
        if maker == "TypedDict" and isinstance(content, ast.Dict):
            return ClassKind(name=name, kind="typed dict", fields=tuple(_dict_fields(content, call)))
        if maker in ENUMS:
            return ClassKind(name=name, kind="enum", members=tuple(_enum_members(literal(content), maker)))
        return None


def _with_metadata(call: ast.Call) -> ast.Call:
    """The call, with the description from the metadata of a dataclass field added."""
    for word in call.keywords:
        if word.arg == "metadata" and isinstance(said := literal(word.value), dict) and "description" in said:
            text = ast.keyword("description", ast.Constant(said["description"]))
            return ast.Call(func=call.func, args=call.args, keywords=[*call.keywords, text])
    return call


def _tuple_fields(content: ast.expr, call: ast.Call) -> Iterator[ClassField]:
    defaults = next((word.value for word in call.keywords if word.arg == "defaults"), None)
    given = list(defaults.elts) if isinstance(defaults, ast.Tuple | ast.List) else []
    pairs: list[tuple[str, ast.expr | None]] = []
    names = literal(content)
    if isinstance(names, str):
        pairs = [(name, None) for name in names.replace(",", " ").split()]
    elif isinstance(content, ast.List | ast.Tuple):
        for item in content.elts:
            pair = item.elts if isinstance(item, ast.Tuple) else [item]
            name = literal(pair[0])
            if isinstance(name, str):
                pairs.append((name, pair[1] if len(pair) > 1 else None))
    values: list[ast.expr | None] = [*[None] * (len(pairs) - len(given)), *given]
    for (name, hint), default in zip(pairs, values, strict=False):
        yield ClassField(name=name, key=name, hint=hint, default=default, is_required=default is None)


def _dict_fields(content: ast.Dict, call: ast.Call) -> Iterator[ClassField]:
    total = not any(word.arg == "total" and literal(word.value) is False for word in call.keywords)
    for key, hint in zip(content.keys, content.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            mark = ast.unparse(hint.value).rpartition(".")[2] if isinstance(hint, ast.Subscript) else ""
            required = mark == "Required" or (total and mark != "NotRequired")
            yield ClassField(name=key.value, key=key.value, hint=hint, is_required=required)


def _enum_members(content: object, maker: str) -> Iterable[tuple[str, object]]:
    if isinstance(content, str):
        content = content.replace(",", " ").split()
    if isinstance(content, dict):
        return [(str(name), value) for name, value in content.items()]
    if not isinstance(content, list):
        return []
    if all(isinstance(item, str) for item in content):
        number = maker in {"Enum", "IntEnum"}
        return [(name, place + 1 if number else UNKNOWN) for place, name in enumerate(content)]
    return [(str(item[0]), item[1]) for item in content if isinstance(item, tuple | list) and len(item) == 2]  # noqa: PLR2004 - a name and a value


def parse_python(code: bytes, place: str) -> ast.Module:
    """The syntax tree of a file; raises ToolError with the line of a syntax error."""
    if len(code) > MAX_BYTES:
        raise ToolError(Kind.LIMIT_EXCEEDED, f"{place}: larger than {MAX_BYTES:,} bytes; move data out of the code")
    if code.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ToolError(Kind.VALIDATION, f"{place}: is UTF-16; save it as UTF-8")
    if b"\0" in code:
        raise ToolError(Kind.VALIDATION, f"{place}: holds a NUL byte; write it as text")
    for line in code.split(b"\n", 2)[:2]:
        # Python would decode the file differently from the text that is checked here.
        if (found := ENCODING.match(line)) and found[1].lower() not in (b"utf-8", b"utf8"):
            message = f"{place}: declares the encoding {found[1].decode()!r:.40}; save it as UTF-8 and remove that line"
            raise ToolError(Kind.VALIDATION, message)
    try:
        text = code.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise ToolError(Kind.VALIDATION, f"{place}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, place)
    except SyntaxError as error:
        # It may be the syntax of a later Python.
        version = ".".join(map(str, sys.version_info[:2]))
        is_vague = error.msg == "invalid syntax"
        cure = f"correct the line{f', or write it as Python {version} takes it' if is_vague else ''}"
        number, column = error.lineno or 1, error.offset or 1
        details = {"line": number, "column": column, "excerpt": point_at(error.text or "", column)}
        raise ToolError(Kind.VALIDATION, f"{place}:{number}: {error.msg}", cure=cure, details=details) from None
    except (RecursionError, MemoryError, ValueError):
        raise ToolError(Kind.VALIDATION, f"{place}: nested too deeply to be read; make it simpler") from None


def refuse_base_tools(module: ast.Module, place: str) -> None:
    """Refuse a file that defines a BaseTool, whose schema is only known when its code runs."""
    for statement in module.body:
        if isinstance(statement, ast.ClassDef) and any(last_name(base) == "BaseTool" for base in statement.bases):
            message = (
                f"{place}:{statement.lineno}: {statement.name} is a BaseTool, whose schema only running code can tell"
            )
            raise ToolError(Kind.VALIDATION, f"{message}; {BASE_TOOL_CURE}")


def last_name(node: ast.expr) -> str:
    """The last part of a dotted name, such as `tool` of `toolcrib.tool`; empty if it is not a name."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def top_imports(module: ast.Module) -> tuple[str, ...]:
    """The modules that a file imports at its top level, without relative imports."""
    found = dict.fromkeys(name for statement in module.body for name in _imported(statement))
    return tuple(found)[:MAX_IMPORTS]


def all_imports(module: ast.Module) -> tuple[str, ...]:
    """The modules that a file imports anywhere, also inside its functions, without relative imports."""
    found = dict.fromkeys(name for node in ast.walk(module) if isinstance(node, ast.stmt) for name in _imported(node))
    return tuple(found)[:MAX_IMPORTS]


def _imported(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom) and statement.level == 0 and statement.module != "__future__":
        yield statement.module or ""
