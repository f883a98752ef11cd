"""From a package to its Tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.dialects.built.package import DESCRIPTION_FILE, IMPORT_FILE, VERSION, Package, write_description
from toolcrib.dialects.reading import parse_python
from toolcrib.dialects.syntax import top_imports
from toolcrib.model.tool import Chained, Origin, Script, Tool
from toolcrib.pure.schema import check_parameters, check_schema

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "built"
RUNTIME = "python_runtime"
REQUIREMENTS, REQUEST = "requirements", "requestID"
# How the makers of old answer: what came of it, whether that is all that was asked for, and if not, why.
ENVELOPE = frozenset({"result", "success", "error"})


def make_tool(package: Package, folder: Path) -> Tool:
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
    """The files that lie beside those of a tool that was made here, in the bundle of its folder; without any times."""
    run = tool.run
    if not isinstance(run, Chained) or run.script is None:
        return {}
    requirements = tool.metadata.get(REQUIREMENTS)
    package = Package(
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


def _declares_envelope(package: Package) -> bool:
    """Whether the three words are outputs of its own, so that they mean nothing else."""
    properties = (package.output_schema or {}).get("properties")
    return isinstance(properties, dict) and properties.keys() >= ENVELOPE
