"""From a package to its Tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.dialects.built.package import VERSION
from toolcrib.dialects.reading import parse_python
from toolcrib.dialects.syntax import top_imports
from toolcrib.model.tool import Chained, Origin, Script, Tool
from toolcrib.pure.schema import check_parameters, check_schema

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.dialects.built.package import Package

SOURCE = "built"
RUNTIME = "python_runtime"
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
        metadata={"requirements": list(package.requirements), "requestID": package.request},
        origin=Origin(place=str(path)),
    )


def _declares_envelope(package: Package) -> bool:
    """Whether the three words are outputs of its own, so that they mean nothing else."""
    properties = (package.output_schema or {}).get("properties")
    return isinstance(properties, dict) and properties.keys() >= ENVELOPE
