"""Tool folders: building many, building them again, exporting many tools, and a warm handler against a cold Node."""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from run import show
from toolcrib import Crib
from toolcrib.build import build, load_registry
from toolcrib.lib.export_schemas import Provider
from toolcrib.lib.export_schemas.definitions import export_tools
from toolcrib.model.tool import Function, Tool

FOLDERS = 500
BUILD_SECONDS = 10.0
TOOLS = 5_000
EXPORT_SECONDS = 2.0
# Who has a strict mode.
STRICT = (Provider.OPENAI, Provider.OPENAI_RESPONSES, Provider.ANTHROPIC)
ROUNDS = 12
CALLS = 50
SHARE_OF_A_COLD_START = 1 / 100

SUMMARY = "Find articles about a topic, newest first. Ask for the topic; never guess one."
DOCUMENT = """# Find articles

## Summary
Find articles about a topic.

## Preconditions
- A topic was named

## Postconditions
- Nothing has changed

## Invariants
- The newest come first

## Failure Modes
- **VALIDATION**: The topic is too long, refused before the tool runs

## Examples

### Example 1: A topic
```json
{"topic": "tools", "limit": 2}
```

## Common Mistakes
- Guessing a topic
"""
HANDLER = "export async function execute({ args }) {\n  return { ok: true, data: { topic: args.topic, limit: args.limit } };\n}\n"
PARAMETERS: dict[str, object] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["topic"],
    "properties": {
        "topic": {"type": "string", "description": "What about.", "minLength": 1, "maxLength": 200},
        "limit": {"type": "integer", "description": "How many.", "minimum": 1, "maximum": 10, "default": 5},
        "order": {"enum": ["newest", "oldest"], "description": "Which first."},
        "filters": {
            "type": "array",
            "description": "Words that must occur.",
            "items": {"type": "object", "additionalProperties": False, "properties": {"word": {"type": "string"}}},
        },
    },
}


def write_folder(root: Path, number: int) -> Path:
    folder = root / f"find-articles-{number}"
    folder.mkdir(parents=True)
    schema = {
        "toolId": f"find_articles_{number}",
        "version": "1.0.0",
        "description": f"Find articles about a topic, in collection {number}.",
        "category": "retrieval",
        "sideEffects": "read_only",
        "idempotent": True,
        "requiresConfirmation": False,
        "allowedModes": ["text", "voice"],
        "latencyBudgetMs": 500,
        "parameters": PARAMETERS,
    }
    (folder / "schema.json").write_text(json.dumps(schema, indent=2))
    (folder / "doc_summary.md").write_text(SUMMARY)
    (folder / "doc.md").write_text(DOCUMENT)
    (folder / "handler.js").write_text(HANDLER)
    return folder


async def run() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        kept = [build_many(Path(folder) / "many"), export_many(), await compare_starts(Path(folder) / "starts")]
    return all(kept)


def build_many(project: Path) -> bool:
    """Five hundred folders from nothing, unchanged, with one edit, and loaded at start."""
    tools, cache = project / "tools", project / "build.json"
    folders = [write_folder(tools, number) for number in range(FOLDERS)]
    first = _seconds(lambda: build(tools, cache=cache))
    again = statistics.median(_seconds(lambda: build(tools, cache=cache)) for _ in range(5))
    (folders[7] / "doc_summary.md").write_text(SUMMARY + " Be brief.")
    edited = _seconds(lambda: build(tools, cache=cache))
    loaded = statistics.median(_seconds(lambda: load_registry(tools)) for _ in range(5))
    registry = load_registry(tools)
    assert registry is not None
    assert len(registry.tools) == FOLDERS, registry
    return show(
        f"{FOLDERS} tool folders",
        [
            ("built from nothing, in units of 10 s", first, first / BUILD_SECONDS, 1),
            ("built again unchanged, in first builds", again, again / first, None),
            ("built again with one edit, in first builds", edited, edited / first, None),
            ("loaded at start", loaded, None, None),
        ],
    )


def export_many() -> bool:
    """Five thousand tools for every provider."""
    tools = [
        Tool(
            name=f"find_articles_{number}",
            description="Find articles about a topic.",
            parameters=PARAMETERS,
            run=Function(call=print, is_async=False),
        )
        for number in range(TOOLS)
    ]
    rows: list[tuple[str, float, float | None, float | None]] = []
    for provider in Provider:
        for strict in (False, True) if provider in STRICT else (False,):
            seconds = statistics.median(
                _seconds(lambda provider=provider, strict=strict: export_tools(tools, provider, strict=strict))
                for _ in range(3)
            )
            name = f"{provider}{', strict' if strict else ''}, in units of 2 s"
            rows.append((name, seconds, seconds / EXPORT_SECONDS, 1))
    return show(f"{TOOLS} tools exported", rows)


async def compare_starts(project: Path) -> bool:
    """A call of a handler that is ready, through the whole pipeline, against a Node that is started for it."""
    tools = project / "tools"
    handler = write_folder(tools, 1) / "handler.js"
    built = build(tools, project=project)
    assert built.ok, built
    program = f"import({json.dumps(str(handler))}).then((m) => m.execute({{args: {{topic: 'x', limit: 5}}}}))"
    warm: list[float] = []
    cold: list[float] = []
    async with Crib(project, builtins={"enabled": False}) as crib:
        result = await crib.call("find_articles_1", topic="x")
        assert result.value == {"topic": "x", "limit": 5}, result
        for _ in range(ROUNDS):
            started = time.perf_counter()
            for _ in range(CALLS):
                result = await crib.call("find_articles_1", topic="x")
            warm.append((time.perf_counter() - started) / CALLS)
            assert result.ok, result
            cold += [
                _seconds(lambda: subprocess.run(["node", "-e", program], check=True, capture_output=True))
                for _ in range(4)
            ]
    quick, slow = statistics.median(warm), statistics.median(cold)
    return show(
        "Handlers in Node",
        [
            ("a cold Node with the handler", slow, 1.0, None),
            ("a warm call of it, in cold starts", quick, quick / slow, SHARE_OF_A_COLD_START),
        ],
    )


def _seconds(work) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
