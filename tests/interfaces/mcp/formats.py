"""A project with one tool of every format, each of which gives the same result, and one tool whose result is too large to be given at once.

`python formats.py FOLDER` writes the project and prints the names of its tools.
"""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path

from toolcrib import Crib

ARGUMENTS = {"first": 20, "second": 22}
RESULT = {"sum": 42}
BUNDLE = "01a1e380-0000-7000-8000-000000000042"
HOST, PLAIN, SCRIPT, FOLDER, STORED = NAMES = ("add_host", "add_plain", "add_script", "add_folder", "add-stored")

MODULE = "host_of_formats"
LARGE, LARGE_LETTERS = "large_host", 5_000

PARAMETERS = {
    "type": "object",
    "properties": {
        "first": {"type": "integer", "description": "The first number."},
        "second": {"type": "integer", "description": "The second number."},
    },
    "required": ["first", "second"],
    "additionalProperties": False,
}
FUNCTION = '''def {name}(first: int, second: int) -> dict[str, int]:
    """Add two numbers.

    Args:
        first: The first number.
        second: The second number.
    """
    return {{"sum": first + second}}
'''
FILES = {
    "toolcrib.toml": """[modules]
tools = ["host_of_formats"]

[builtins]
enabled = false

[calls]
result_bytes = 2000
""",
    "host_of_formats.py": f'''from toolcrib import registered, tool


@tool
{FUNCTION.format(name=HOST)}

@tool
def {LARGE}(first: int, second: int) -> dict[str, str]:
    """Give a long text."""
    return {{"text": "x" * {LARGE_LETTERS}}}


@registered("formats.add")
def add(context, arguments):
    return {{"sum": arguments["first"] + arguments["second"]}}
''',
    f"tools/{PLAIN}.py": FUNCTION.format(name=PLAIN),
    f".ai/tools/numbers/{SCRIPT}.py": f"""__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "numbers"
__tool_description__ = "Add two numbers"


{FUNCTION.format(name="main")}""",
    "tools/add-folder/schema.json": json.dumps(
        {
            "toolId": FOLDER,
            "version": "1.0.0",
            "description": "Add two numbers.",
            "category": "utility",
            "sideEffects": "none",
            "idempotent": True,
            "requiresConfirmation": False,
            "allowedModes": ["text", "voice"],
            "latencyBudgetMs": 800,
            "parameters": PARAMETERS,
        },
        indent=2,
    ),
    "tools/add-folder/doc.md": """# Add

## Summary
Add two numbers.

## Preconditions
- None

## Postconditions
- Nothing has changed

## Invariants
- The sum is exact

## Failure Modes
- **VALIDATION**: A number is missing, refused before the tool runs

## Examples

### Example 1: Two numbers
Action:
```json
{"first": 20, "second": 22}
```
Result:
```json
{"sum": 42}
```

## Common Mistakes (Do Not)
❌ Give numbers as text
✅ Give them as integers
""",
    "tools/add-folder/doc_summary.md": "Adds two numbers.\n",
    "tools/add-folder/handler.py": """async def execute(args, context):
    return {"ok": True, "data": {"sum": args["first"] + args["second"]}}
""",
}
DOCUMENT = {
    "schemaVersion": "toolcrib-1",
    "displayName": "Add",
    "description": "Add two numbers",
    "type": "go",
    "isEnabled": True,
    "argSchema": PARAMETERS,
    "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
    "impl": {"goFunc": "formats.add"},
}


def write_project(project: Path) -> None:
    """Write the files, and store the document of the bundle."""
    # Python loads a module of a name once, and several tests of one process may have such a project.
    own = f"{MODULE}_{zlib.crc32(str(project).encode()):x}"
    for path, text in FILES.items():
        file = project / path.replace(MODULE, own)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace(MODULE, own), encoding="utf-8")
    with Crib(project) as crib:
        crib.bundles.put_bundle(BUNDLE, {"slug": "sums", "displayName": "Sums", "isEnabled": True})
        crib.bundles.put_tool(BUNDLE, STORED, "v1", DOCUMENT)
        problems = [problem for built in crib.registries.build(strict=False) for problem in built.problems]
    assert not problems, problems


if __name__ == "__main__":
    write_project(Path(sys.argv[1]))
    print(json.dumps([*NAMES, LARGE]))
