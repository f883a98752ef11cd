"""Read files of other agent frameworks from the syntax tree: no code of a file runs before a call.

A tool that cannot be used is reported as a problem, and does not affect the other tools of its file.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.features.ecosystems.definitions import fit, read_definitions
from toolcrib.features.ecosystems.field_defaults import without_field_defaults
from toolcrib.features.ecosystems.file_names import FileNames
from toolcrib.features.ecosystems.frameworks import OPEN_WEBUI, PACKAGES, SMOLAGENTS
from toolcrib.features.ecosystems.injected_arguments import read_injected, refuse_injected_fields
from toolcrib.features.ecosystems.mcp_server import is_server, read_server
from toolcrib.features.ecosystems.tool_objects import find_tools, nested_tool, uses_framework
from toolcrib.infra.files import read_small
from toolcrib.lib.documents import read_json
from toolcrib.lib.names import is_capability
from toolcrib.lib.python_declarations import read_docstring
from toolcrib.lib.python_hints import HintError, SyntaxHints, read_answer, read_parameters, writable
from toolcrib.lib.python_source import literal, parse_python, top_imports
from toolcrib.lib.schema import check_schema
from toolcrib.lib.schema_structure import is_json, object_schema
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained, Convention, Origin, Script, SideEffects, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from toolcrib.features.ecosystems.definitions import Definition
    from toolcrib.features.ecosystems.mcp_server import Listed
    from toolcrib.features.ecosystems.tool_objects import ToolObject
    from toolcrib.lib.python_declarations import Docstring
    from toolcrib.lib.python_source import AnyFunction

OTHER_FILES = frozenset({"conftest", "setup"})
MAX_FILE_BYTES = 256_000
MAX_TOOLS = 200
REQUIRES = "__requires__"
BLOCK = b"# /// script"
BEFORE_2 = "mcp<2"
REQUIREMENTS = re.compile(r"^requirements:[ \t]*(.+)$", re.MULTILINE)
NOT_A_NAME = re.compile(r"[^\w-]+")
# The types of a smolagents input; images and sounds have no JSON.
SMOLAGENTS_TYPES = frozenset({"string", "boolean", "integer", "number", "array", "object", "any", "null"})
SCHEMA_WORDS = frozenset({"description", "enum", "items", "properties", "minimum", "maximum"})


class FrameworkFile:
    """Reads Python files of other frameworks, and JSON with the definitions of functions."""

    name = "framework"

    def reads(self, path: Path) -> bool:
        """Whether the file may hold a tool: hidden files, tests and set-up files do not."""
        stem = path.stem
        return stem[:1] not in "_." and not stem.startswith("test_") and stem not in OTHER_FILES

    def read(self, path: Path, code: bytes) -> Iterator[Tool]:
        """The tools of the file; none if it belongs to no other framework."""
        if path.suffix == ".json":
            return _read_json_file(path, code)
        return _read_python_file(path, code)


def _read_python_file(path: Path, code: bytes) -> Iterator[Tool]:
    try:
        module = parse_python(code, str(path))
    except ToolError:
        return  # the format of plain files reports the error
    names = FileNames(module)
    reader = _Reader(path, code, module, names)
    found = list(find_tools(names))
    for each in found[:MAX_TOOLS]:
        if isinstance(each, ToolError):
            reader.refuse(each, line=each.details.get("line"), name=each.details.get("tool_id"))
        else:
            reader.add(each)
    if not found:
        _add_definitions(reader, names)
    if not reader.tools and not reader.problems and uses_framework(names):
        _add_server(reader, names, module)
    if not reader.tools and not reader.problems and uses_framework(names):
        _refuse_hidden_tools(reader, names)
    yield from reader.tools.values()
    reader.raise_problems()


def _read_json_file(path: Path, code: bytes) -> Iterator[Tool]:
    try:
        document = read_json(code, place=str(path), max_bytes=MAX_FILE_BYTES)
    except ToolError:
        return
    definitions = read_definitions(document)
    if not definitions:
        return
    beside = path.with_suffix(".py")
    source = read_small(beside, MAX_FILE_BYTES)
    module = ast.Module([], []) if source is None else parse_python(source, str(beside))
    reader = _Reader(beside, source or b"", module, FileNames(module), place=path)
    for definition in definitions:
        reader.define(definition, f"write def {definition.name}(…) in {beside.name} beside it")
    yield from reader.tools.values()
    reader.raise_problems({"beside": [str(beside)]})


def _add_definitions(reader: _Reader, names: FileNames) -> None:
    """Add the functions that a list of definitions in the file names."""
    for statement in names.statements:
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.List | ast.Dict):
            for definition in read_definitions(literal(value)):
                reader.define(definition, f"write def {definition.name}(…) in this file", line=statement.lineno)


def _add_server(reader: _Reader, names: FileNames, module: ast.Module) -> None:
    """Add the tools that a low-level MCP server lists."""
    try:
        for listed in list(read_server(names, module))[:MAX_TOOLS]:
            reader.serve(listed)
    except ToolError as problem:
        reader.refuse(problem, line=problem.details.get("line"))


def _refuse_hidden_tools(reader: _Reader, names: FileNames) -> None:
    """Report why the tools of a file cannot be read; a file without tools is left to the format of plain files."""
    if (outer := nested_tool(names)) is not None:
        message = f"its tools are made inside of {outer.name}, so only a call would show them; move them out of it"
        reader.refuse(ToolError(Kind.VALIDATION, message), line=outer.lineno)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Interface:
    """The part of a tool that a model sees: name, description and parameters."""

    name: str
    description: str
    documentation: str
    parameters: dict[str, object]
    warnings: tuple[str, ...]


class _Reader:
    """Makes the tools of one file, and collects the problems of those that cannot be used."""

    def __init__(
        self, path: Path, code: bytes, module: ast.Module, names: FileNames, *, place: Path | None = None
    ) -> None:
        self.tools: dict[str, Tool] = {}
        self.problems: list[str] = []
        self._broken: list[str] = []
        self._path = path
        self._place = place or path
        self._code = code
        self._module = module
        self._names = names
        self._requires: frozenset[str] = frozenset()
        self._imports = top_imports(module)
        self._packages = () if BLOCK in code else tuple(sorted(_packages(module, names)))

    def add(self, found: ToolObject) -> None:
        """Add the tool of a framework object."""
        self._keep(found.line, self._name(found), lambda: self._framework_tool(found))

    def define(self, definition: Definition, cure: str, line: int = 1) -> None:
        """Add the tool of a definition and the function of its name."""
        self._keep(line, definition.name, lambda: self._defined_tool(definition, cure, line))

    def serve(self, listed: Listed) -> None:
        """Add a tool that a server lists; one function of the server answers the calls of all."""
        self._keep(listed.line, listed.name, lambda: self._listed_tool(listed))

    def refuse(self, problem: ToolError, *, line: object = None, name: object = None) -> None:
        """Record why a tool cannot be used."""
        at = f":{line}" if isinstance(line, int) else ""
        self.problems.append(f"{self._place}{at}: {problem.message}")
        if isinstance(name, str):
            self._broken.append(name)

    def raise_problems(self, details: Mapping[str, object] | None = None) -> None:
        """Raise one ToolError with all problems."""
        if self.problems:
            known = {"problems": self.problems, "tool_ids": self._broken, **(details or {})}
            raise ToolError(Kind.VALIDATION, "\n".join(self.problems), details=known)

    def _keep(self, line: int, name: str, make: Callable[[], Tool]) -> None:
        try:
            tool = make()
            if tool.slug in self.tools:
                self.refuse(
                    ToolError(Kind.VALIDATION, f"there is another tool {tool.name}; name them apart"), line=line
                )
                return
            self.tools[tool.slug] = tool
        except (HintError, ToolError) as problem:
            error = problem if isinstance(problem, ToolError) else ToolError(Kind.VALIDATION, str(problem))
            self.refuse(error, line=line, name=name)
        except RecursionError:
            self.refuse(ToolError(Kind.VALIDATION, "nested too deeply; make it simpler"), line=line, name=name)

    def _framework_tool(self, found: ToolObject) -> Tool:
        self._refuse_disabled(found)
        given = read_injected(found, self._names)
        hints = SyntaxHints(self._module)
        interface = self._interface(found, hints, given)
        binding = {**found.binding, "given": {name: value for name, value in given.items() if value != "default"}}
        binding |= self._extras(found)
        is_read_only = self._annotation(found, "readOnlyHint")
        return self._tool(
            interface,
            binding,
            found.function,
            output_schema=read_answer(found.function, hints) if found.framework.promises else None,
            requires_confirmation=self._needs_confirmation(found),
            side_effects=SideEffects.READ_ONLY if is_read_only else None,
        )

    def _interface(self, found: ToolObject, hints: SyntaxHints, given: Mapping[str, str]) -> _Interface:
        docstring = read_docstring(ast.get_docstring(found.function, clean=False))
        said = self._text(found, found.framework.texts)
        description = said or docstring.summary
        warnings = []
        if not description and found.owner is not None:
            description = read_docstring(ast.get_docstring(found.owner, clean=False)).summary
        name = self._name(found)
        if not description:
            description = name.replace("_", " ").replace("-", " ").capitalize()
            warnings.append(f"{self._place}:{found.line}: nothing describes {name}; write a docstring")
        parameters = self._parameters(found, hints, given, docstring)
        warnings += [f"{self._place}:{found.line}: {problem}" for problem in hints.warnings]
        return _Interface(
            name=name,
            description=writable(description),
            documentation="" if said else writable(docstring.description),
            parameters=parameters,
            warnings=tuple(warnings),
        )

    def _parameters(
        self, found: ToolObject, hints: SyntaxHints, given: Mapping[str, str], docstring: Docstring
    ) -> dict[str, object]:
        if found.framework is SMOLAGENTS and found.owner is not None:
            return self._inputs(found)
        if (fields := self._schema_class(found)) is not None:
            schema = hints.read(fields)
            if schema.get("type") == "object":
                refuse_injected_fields(found, fields, self._names)
                return {"additionalProperties": False, **schema}
            hints.warnings.clear()  # a class from elsewhere; the signature tells the same
        skip = frozenset((*given, *self._excluded(found), *(("self",) if found.owner is not None else ())))
        return read_parameters(without_field_defaults(found.function, self._names), hints, docstring, skip=skip)

    def _inputs(self, found: ToolObject) -> dict[str, object]:
        """The schema of the class attribute `inputs` of smolagents."""
        node = None if found.owner is None else self._names.attribute(found.owner, "inputs")
        inputs = NotImplemented if node is None else self._names.literal(node)
        if not isinstance(inputs, dict) or not all(isinstance(item, dict) for item in inputs.values()):
            raise ToolError(Kind.VALIDATION, "inputs is not written out; write it as a dict of literals")
        taken = [argument.arg for argument in found.function.args.args[1:]]
        if sorted(taken) != sorted(inputs) and found.function.args.kwarg is None:
            message = f"inputs names {', '.join(inputs) or 'nothing'} and forward takes {', '.join(taken) or 'nothing'}"
            raise ToolError(Kind.VALIDATION, f"{message}; give both the same names")
        properties: dict[str, object] = {}
        for name, said in inputs.items():
            properties[name] = _input_schema(name, said)
        return object_schema(properties, [name for name, said in inputs.items() if said.get("nullable") is not True])

    def _schema_class(self, found: ToolObject) -> ast.expr | None:
        """The class that declares the arguments, if the file names one."""
        node = found.said.get("args_schema")
        if node is None and found.owner is not None:
            node = self._names.attribute(found.owner, "args_schema")
        return node if isinstance(node, ast.Name | ast.Attribute) else None

    def _extras(self, found: ToolObject) -> dict[str, object]:
        """Further facts that the process needs to run the file."""
        extras: dict[str, object] = {}
        if (fields := self._schema_class(found)) is not None:
            extras["fields"] = ast.unparse(fields)
        node = found.said.get("response_format")
        if node is None and found.owner is not None:
            node = self._names.attribute(found.owner, "response_format")
        if node is not None and self._names.literal(node) == "content_and_artifact":
            extras["first"] = True
        return extras

    def _excluded(self, found: ToolObject) -> list[str]:
        node = found.said.get("exclude_args")
        excluded = None if node is None else self._names.literal(node)
        return [name for name in excluded if isinstance(name, str)] if isinstance(excluded, list) else []

    def _name(self, found: ToolObject) -> str:
        written = self._text(found, found.framework.names)
        if not written:
            is_class = found.owner is not None and found.framework is not OPEN_WEBUI
            written = _snake(found.owner.name) if is_class and found.owner is not None else found.function.name
        name = NOT_A_NAME.sub("_", written.strip()).strip("_") or found.function.name
        return name.lower() if found.framework.small_letters else name

    def _text(self, found: ToolObject, words: tuple[str, ...]) -> str:
        """A text from the call that makes the tool, or from its class."""
        for word in words:
            node = found.said.get(word)
            if node is None and found.owner is not None and found.framework is not OPEN_WEBUI:
                node = self._names.attribute(found.owner, word)
            if node is None:
                continue
            text = self._names.literal(node)
            if isinstance(text, str):
                return " ".join(text.split()) if word in found.framework.texts else text
            if text is not None:
                message = f"{word} of {found.function.name} is computed; write it as a text"
                raise ToolError(Kind.VALIDATION, message)
        return ""

    def _annotation(self, found: ToolObject, word: str) -> bool:
        node = found.said.get("annotations")
        if node is None:
            return False
        said = self._names.literal(node)
        if isinstance(said, dict):
            return said.get(word) is True
        words = node.keywords if isinstance(node, ast.Call) else []
        return any(item.arg == word and literal(item.value) is True for item in words)

    def _refuse_disabled(self, found: ToolObject) -> None:
        for word in found.framework.switches & found.said.keys():
            value = self._names.literal(found.said[word])
            if value is False:
                raise ToolError(Kind.VALIDATION, f"{found.function.name} is switched off in the file ({word}=False)")
            if value is not True and value is not None:
                message = f"{word} of {found.function.name} decides at run time whether it is a tool; take it out"
                raise ToolError(Kind.VALIDATION, message)

    def _needs_confirmation(self, found: ToolObject) -> bool:
        """Whether calls need confirmation: if the file says so, or decides it at run time."""
        nodes = [found.said[word] for word in found.framework.confirms if word in found.said]
        return any(self._names.literal(node) is not False for node in nodes)

    def _defined_tool(self, definition: Definition, cure: str, line: int) -> Tool:
        function = self._names.functions.get(definition.name)
        if function is None:
            raise ToolError(Kind.VALIDATION, f"no function answers {definition.name}; {cure}")
        fitted = fit(definition, function)
        docstring = read_docstring(ast.get_docstring(function, clean=False))
        interface = _Interface(
            name=definition.name,
            description=writable(definition.description or docstring.summary or definition.name.replace("_", " ")),
            documentation="",
            parameters=fitted.parameters,
            warnings=tuple(f"{self._place}:{line}: {warning}" for warning in fitted.warnings),
        )
        return self._tool(interface, {"kind": "function", "name": function.name, "whole": fitted.takes_whole}, function)

    def _listed_tool(self, listed: Listed) -> Tool:
        interface = _Interface(
            name=listed.name,
            description=writable(listed.description) or listed.name.replace("_", " ").capitalize(),
            documentation="",
            parameters=listed.parameters,
            warnings=(),
        )
        binding: dict[str, object] = {
            "kind": "decorated",
            "name": listed.function.name,
            "line": listed.function.lineno,
            "decorator": listed.decorator,
            "tool": listed.name,
        }
        return self._tool(interface, binding, listed.function)

    def _tool(self, interface: _Interface, binding: dict[str, object], function: AnyFunction, **more: object) -> Tool:
        place = f"{self._path}:{function.lineno}"
        check_schema(interface.parameters, f"{place}: parameters")
        script = Script(
            path=self._path,
            code=self._code,
            language="python",
            entry=function.name,
            convention=Convention.OBJECT,
            imports=self._imports,
            binding=binding,
            packages=self._packages,
        )
        return Tool(
            name=interface.name,
            description=interface.description,
            documentation=interface.documentation,
            parameters=interface.parameters,
            run=Chained(
                kind=script.kind, tool_type="file", executor="python_runtime", folder=self._path.parent, script=script
            ),
            requires=_requires(self._module, self._path),
            source_type="file",
            # The origin of a definition in JSON is the definition.
            origin=Origin(place=str(self._place), line=function.lineno if self._place == self._path else 1),
            warnings=interface.warnings,
            **more,  # type: ignore[arg-type]  # fields of a Tool, by their names
        )


def _requires(module: ast.Module, path: Path) -> frozenset[str]:
    """The capabilities that the file lists under `__requires__`, as plain files do."""
    for statement in module.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if not any(isinstance(target, ast.Name) and target.id == REQUIRES for target in targets):
            continue
        words = literal(statement.value) if isinstance(statement, ast.Assign) else None
        if isinstance(words, list) and all(isinstance(word, str) and is_capability(word) for word in words):
            return frozenset(words)
        message = f'{path}:{statement.lineno}: {REQUIRES}: write a list of dotted names, such as ["fs.read"]'
        raise ToolError(Kind.VALIDATION, message)
    return frozenset()


def _packages(module: ast.Module, names: FileNames) -> set[str]:
    """The packages of the frameworks that the file imports, and those in the header of an Open WebUI file."""
    found = {PACKAGES[name] for name in names.packages & PACKAGES.keys()}
    old = {PACKAGES[home] for name in names.imports for home in PACKAGES if "." in home and name.startswith(f"{home}.")}
    if is_server(names):
        old.add(BEFORE_2)  # later versions have no such decorators
    if BEFORE_2 in old:
        found -= {"mcp"}
    head = ast.get_docstring(module) or ""
    listed = REQUIREMENTS.search(head) if "Tools" in names.classes else None
    written = [] if listed is None else [word.strip() for word in listed[1].split(",")]
    return {*found, *old, *(word for word in written if word)}


def _input_schema(name: str, said: dict[str, object]) -> dict[str, object]:
    written = said.get("type")
    types = written if isinstance(written, list) else [written]
    if not all(isinstance(word, str) and word in SMOLAGENTS_TYPES for word in types):
        message = f"inputs: {name}: {written!r:.40} has no JSON form; use {', '.join(sorted(SMOLAGENTS_TYPES))}"
        raise ToolError(Kind.VALIDATION, message)
    schema = {word: value for word, value in said.items() if word in SCHEMA_WORDS and is_json(value)}
    if "any" in types:
        return schema
    nullable = ["null"] if said.get("nullable") is True and "null" not in types else []
    known = [*types, *nullable]
    return {"type": known[0] if len(known) == 1 else known, **schema}


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
