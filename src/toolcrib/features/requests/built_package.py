"""A built package: what was proved of it, the two files that Toolcrib generates for it, and the `Tool` made from it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.lib.document_format import SCHEMA_VERSION, write_tool
from toolcrib.lib.names import stable_id
from toolcrib.lib.python_source import parse_python, top_imports
from toolcrib.lib.schema import check_parameters, check_schema
from toolcrib.model.tool import Chained, Origin, Script, Tool

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DESCRIPTION_FILE = "tool.json"
IMPORT_FILE = "__init__.py"
GENERATED = (DESCRIPTION_FILE, IMPORT_FILE)
VERSION = "1.0.0"
ALIAS = "run"
SOURCE = "built"
RUNTIME = "python_runtime"
REQUIREMENTS, REQUEST = "requirements", "requestID"
# The keys of an enveloped answer: the result, whether it is complete, and if not, why.
ENVELOPE = frozenset({"result", "success", "error"})


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltPackage:
    """Everything that was proved. `files` are the maker's, by their paths from the package's folder; `request` is the id.

    `function` is the one that is called in `<name>.py`. `hosts` narrows where its network leads; None narrows nothing.
    `importing` are the bytes of the file that Python imports, where there is one already.
    """

    name: str
    function: str
    description: str
    parameters: dict[str, object]
    output_schema: dict[str, object] | None
    files: Mapping[str, bytes]
    requires: frozenset[str] = frozenset()
    hosts: tuple[str, ...] | None = None
    requirements: tuple[str, ...] = ()
    request: str = ""
    times: Mapping[str, str] = field(default_factory=dict)
    importing: bytes = b""

    @property
    def entry(self) -> str:
        """The file that holds the function."""
        return f"{self.name}.py"

    @property
    def contents(self) -> dict[str, bytes]:
        """Every file under the digest: the maker's, and the one that makes it importable."""
        return {**self.files, IMPORT_FILE: self.importing or import_text(self).encode()}

    @property
    def digest(self) -> str:
        """SHA-256 over the bytes of every file and over everything promised; the request id is not part of it."""
        promise = {
            "name": self.name,
            "version": VERSION,
            "function": self.function,
            "description": self.description,
            "parameters": self.parameters,
            "outputSchema": self.output_schema,
            "requires": sorted(self.requires),
            "hosts": self.hosts,
            "requirements": self.requirements,
        }
        text = json.dumps(promise, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return digest_of(self.contents, text.encode("utf-8", "surrogatepass"))

    def address(self, bundle: str) -> str:
        """The one spelling that means this tool, in the bundle of its folder."""
        return f"{bundle}/{self.name.replace('_', '-')}@{VERSION}"


def digest_of(files: Mapping[str, bytes], promise: bytes) -> str:
    """SHA-256 in which each part is prefixed with its length, so that parts cannot run together."""
    found = hashlib.sha256(_framed(promise))
    for path, data in sorted(files.items()):
        found.update(_framed(path.encode()))
        found.update(_framed(data))
    return found.hexdigest()


def describe(package: BuiltPackage, bundle: str) -> dict[str, object]:
    """The document of a package, as the platform writes tools down, with what was asked for and what was proved."""
    address = package.address(bundle)
    return {
        "schemaVersion": SCHEMA_VERSION,
        "bundleID": stable_id("bundle", bundle),
        "toolID": stable_id("tool", address),
        "slug": package.name.replace("_", "-"),
        "version": VERSION,
        "displayName": package.name,
        "description": package.description,
        "type": "go",
        "isEnabled": True,
        "argSchema": package.parameters,
        "outputSchema": package.output_schema or {},
        "impl": {"goFunc": f"tools.{package.name}.{package.function}"},
        "function": package.function,
        "requires": sorted(package.requires),
        "hosts": None if package.hosts is None else list(package.hosts),
        "requirements": list(package.requirements),
        "requestID": package.request,
        "files": {path: hashlib.sha256(data).hexdigest() for path, data in sorted(package.contents.items())},
        "digest": package.digest,
        **package.times,
    }


def write_description(package: BuiltPackage, bundle: str) -> bytes:
    """The bytes of tool.json: the same for the same package and times."""
    return write_tool(describe(package, bundle))


def import_text(package: BuiltPackage) -> str:
    """The file that lets Python import the tool; a call of what it offers is a call like any other."""
    names = offered_names(package.name, package.function)
    return (
        f'"""The tool {package.name}, for Python to import: each call is checked and guarded like any other.\n\n'
        'Toolcrib wrote this file; what is changed in this folder is not run.\n"""\n\n'
        "from toolcrib.built import open_package\n\n"
        f"{' = '.join(names)} = open_package(__file__)\n\n"
        f"__all__ = {json.dumps(sorted(names))}\n"
    )


def offered_names(name: str, function: str) -> tuple[str, ...]:
    """Under which names Python finds the function: its own, that of the tool, and the one that every tool has."""
    return tuple(dict.fromkeys((function, name, ALIAS)))


def make_tool(package: BuiltPackage, folder: Path) -> Tool:
    """The tool whose files lie, or are to lie, in the folder; raises ToolError if its code or its schemas cannot be used."""
    check_parameters(package.parameters, f"{package.name}: arguments")
    check_schema(package.output_schema or {}, f"{package.name}: outputs")
    path = folder.absolute() / package.entry
    code = package.files[package.entry]
    script = Script(
        path=path,
        code=code,
        language="python",
        entry=package.function,
        imports=top_imports(parse_python(code, f"{folder.name}/{package.entry}")),
        files=dict(package.files),
        enveloped=not _declares_envelope(package),
    )
    return Tool(
        name=package.name,
        version=VERSION,
        description=package.description,
        parameters=package.parameters,
        output_schema=package.output_schema,
        run=Chained(
            kind=script.kind,
            tool_type=SOURCE,
            executor=RUNTIME,
            folder=path.parent,
            script=script,
            hosts=package.hosts,
        ),
        source_type=SOURCE,
        requires=package.requires,
        metadata={REQUIREMENTS: list(package.requirements), REQUEST: package.request},
        origin=Origin(place=str(path)),
    )


def write_generated(tool: Tool, bundle: str) -> dict[str, bytes]:
    """The generated files of a built tool in the bundle of its folder, without times."""
    run = tool.run
    if not isinstance(run, Chained) or run.script is None:
        return {}
    requirements = tool.metadata.get(REQUIREMENTS)
    package = BuiltPackage(
        name=tool.name,
        function=run.script.entry,
        description=tool.description,
        parameters=tool.parameters,
        output_schema=tool.output_schema,
        files=run.script.files,
        requires=tool.requires,
        hosts=run.hosts,
        requirements=tuple(map(str, requirements)) if isinstance(requirements, list) else (),
        request=str(tool.metadata.get(REQUEST, "")),
    )
    return {
        IMPORT_FILE: package.contents[IMPORT_FILE],
        DESCRIPTION_FILE: write_description(package, bundle),
    }


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files and their folders where nothing of that name is yet."""
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.write(content)


def _framed(part: bytes) -> bytes:
    return len(part).to_bytes(8, "big") + part


def _declares_envelope(package: BuiltPackage) -> bool:
    """Whether the three keys are declared outputs, and so not an envelope."""
    properties = (package.output_schema or {}).get("properties")
    return isinstance(properties, dict) and properties.keys() >= ENVELOPE
