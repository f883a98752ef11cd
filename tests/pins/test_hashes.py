"""The content hashes of tools of every kind and format: pins, approvals and signatures are made of them."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from toolcrib import Crib
from toolcrib.__main__ import main

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "adoption"


def projects(folder: Path) -> Iterator[tuple[str, Path]]:
    """Copies of projects and of single files as users write them, with their names."""
    for kind in ("bash", "node", "python", "ecosystems"):
        shutil.copytree(CORPUS / kind, folder / kind / "tools", ignore=shutil.ignore_patterns("*.toml", "__pycache__"))
        yield kind, folder / kind
    for project in sorted(CORPUS.glob("formats/*/project"))[::4]:
        yield project.parent.name, shutil.copytree(project, folder / project.parent.name)
    for project in sorted(path.parent for path in ROOT.glob("examples/*/toolcrib.toml")):
        yield f"examples/{project.name}", shutil.copytree(project, folder / "examples" / project.name)


def test_the_content_hash_of_a_tool_is_the_one_that_is_pinned(tmp_path, golden):
    lines = []
    for name, place in projects(tmp_path):
        (place / "toolcrib.toml").touch()
        if "modules" in (place / "toolcrib.toml").read_text("utf-8"):  # they would stay in this process
            continue
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            for folder in {place, place / "samples"}:
                if any(folder.glob("*.json")):
                    main(["bundle", "load", "-C", str(place), str(folder)])
            if any(place.glob("tools/*/schema.json")):
                main(["build", "-C", str(place)])
            with Crib(place) as crib:
                tools = sorted((entry.tool for entry in crib.entries), key=lambda tool: (tool.bundle, tool.name))
        lines += [f"{name} {tool.name} {tool.kind} {tool.content_hash}\n" for tool in tools if tool.bundle != "builtin"]
    golden("hashes.txt", "".join(lines))
