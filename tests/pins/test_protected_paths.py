"""Which paths of a project the built-in file tools and a file of code may read and write."""

from __future__ import annotations

import sys
from pathlib import Path

from toolcrib import Crib

# What lies in the sample project; every path below is tried, whether it is there or not.
FILES = (
    *("notes.txt", "src/main.py", "src/toolcrib.toml", "package.json", "node_modules/left/index.js"),
    *(".venv/bin/python", "venv/lib/site.py", "tools/plain.py", "tools/tool_registry.json", "more/other.py"),
    *(".ai/tools/text/script.py", ".ai/notes.md", ".toolcrib/kept.json", "docs/.toolcrib/note", ".ssh/config"),
    *("server.key", "credentials.json", "credentials.py", "id_rsa", ".npmrc", ".bash_history", "secret.txt"),
    *(".github/workflows/ci.yml", ".vscode/settings.json", "Makefile", "conftest.py", "sitecustomize.py"),
)
MISSING = (
    *("new.txt", "new/folder/file.txt", "tools/new.py", "tools/new/handler.py", ".ai/tools/new/new.py", ".ai/new"),
    *("new/toolcrib.toml", "TOOLCRIB.TOML", "toolcrib.toml.bak", "Tools/new.py", ".toolcrib/new", ".TOOLCRIB/new"),
    *("node_modules/new.js", ".venv/new", "further/new.py", "new.py", "new.pth", "host_of_paths.py", "src/new.so"),
    *("tools", ".ai", ".toolcrib", "../outside.txt", "link_out", "link_to_settings", "link_to_tools/new.py"),
)
PATHS = ("toolcrib.toml", *FILES, *MISSING)
ATTEMPT = '''
import os

__requires__ = ["fs.read", "fs.write"]
BASE = {base!r}
PATHS = {paths!r}


def attempt() -> list:
    """Try every path of the sample."""
    return [[trial(os.path.join(BASE, path), "rb"), trial(os.path.join(BASE, path), "ab")] for path in PATHS]


def trial(path: str, mode: str) -> str:
    try:
        if mode == "ab":
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, mode) as file:
            if mode == "rb":
                file.read()
    except OSError:
        return "no"
    return "yes"
'''
HOST = 'from toolcrib import tool\n\n\n@tool\ndef hello() -> str:\n    """Greet."""\n    return "hello"\n'
VARIANTS = {
    "default": "",
    "with host modules": 'modules.tools = ["host_of_paths"]\n',
    "with more folders": 'catalog.folders = ["tools", "more"]\nscripts.folders = [".ai/tools", "further"]\n',
    "with a workspace of its own": 'workspace.folder = "src"\n',
}


def make_project(folder: Path, settings: str) -> Path:
    project = folder / "project"
    for name in FILES:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("")
    base = project / "src" if "workspace" in settings else project
    (project / "tools" / "attempt.py").write_text(
        ATTEMPT.replace("{paths!r}", repr(PATHS)).replace("{base!r}", repr(str(base)))
    )
    (project / "host_of_paths.py").write_text(HOST)
    (project / "toolcrib.toml").write_text(settings)
    (project / "link_out").symlink_to(folder / "elsewhere")
    (project / "link_to_settings").symlink_to("toolcrib.toml")
    (project / "link_to_tools").symlink_to("tools")
    (folder / "elsewhere").write_text("")
    return project


def by_tools_of_ours(crib: Crib, path: str) -> list[str]:
    results = [crib.call_sync("read_file", path=path), crib.call_sync("write_file", path=path, content="")]
    return ["yes" if result.ok else str(result.error.kind) for result in results]


def by_file_of_code(crib: Crib) -> object:
    result = crib.call_sync("attempt")
    return result.value if result.ok else str(result.error.kind)


def test_tools_read_and_write_only_the_paths_that_are_pinned(tmp_path, golden):
    lines = [f"{'path':<28}{'read_file':<24}{'write_file':<24}{'script reads':<14}script writes"]
    usual: set[str] = set()
    for number, (variant, settings) in enumerate(VARIANTS.items()):
        # Each of the two gets a project of its own: what one writes is there for the other.
        with Crib(make_project(tmp_path / f"code {number}", settings)) as crib:
            theirs = by_file_of_code(crib)
        with Crib(make_project(tmp_path / f"ours {number}", settings)) as crib:
            ours = [by_tools_of_ours(crib, path) for path in PATHS]
        lines += ["", f"{variant}: what differs" if usual else variant]
        if isinstance(theirs, str):
            lines.append(f"no file of code that writes runs: {theirs}")
            theirs = [[]] * len(PATHS)
        rows = [
            "".join([f"{path:<28}", *(f"{cell:<24}" for cell in cells), *(f"{cell:<14}" for cell in more)]).rstrip()
            for path, cells, more in zip(PATHS, ours, theirs, strict=True)
        ]
        lines += [row for row in rows if not any(known.startswith(row) for known in usual)]
        usual = usual or set(rows)
    sys.modules.pop("host_of_paths", None)
    golden("paths.txt", "\n".join(lines) + "\n")
