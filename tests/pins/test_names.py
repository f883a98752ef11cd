"""Which tool a name means when several sources have one of that name, and which version a session keeps to."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Call, Crib, tool
from toolcrib.__main__ import main

NAME = "read_file"  # that of a built-in tool, so that every source can have one
EXECUTOR = "python_runtime"  # that of a tool of the system
HANDLER = "def execute(args, context):\n    return {{'ok': True, 'data': '{answer}'}}\n"
SECTIONS = ("Summary", "Preconditions", "Postconditions", "Invariants", "Failure Modes", "Examples", "Common Mistakes")


def function(description: str, name: str = NAME, **options: Any) -> Callable[[], str]:
    """A tool of the host program."""

    def made() -> str:
        return description

    made.__name__ = name
    made.__doc__ = description
    return tool(**options)(made)


def write_module(project: Path, module: str, name: str) -> None:
    code = f'from toolcrib import tool\n\n\n@tool\ndef {name}() -> str:\n    """{module}"""\n    return ""\n'
    (project / f"{module}.py").write_text(code)


def write_plain(project: Path, folder: str, name: str) -> None:
    (project / folder).mkdir(exist_ok=True)
    (project / folder / f"{name}.py").write_text(
        f'def {name}() -> str:\n    """plain file of {folder}"""\n    return ""\n'
    )


def write_script(tree: Path, description: str, name: str) -> None:
    (tree / "pins").mkdir(parents=True)
    facts = {"version": "1.0.0", "tool_type": "python", "executor_id": "python_runtime", "category": "pins"}
    lines = [f"__{key}__ = {value!r}" for key, value in {**facts, "tool_description": description}.items()]
    (tree / "pins" / f"{name}.py").write_text("\n".join([*lines, "", "def main() -> str:", "    return ''", ""]))


def write_plugin(folder: Path, name: str) -> None:
    """Leave behind what installing a plug-in would."""
    code = "from toolcrib import tool, tool_of\n\n\n@tool(bundle='plugged')\n"
    code += f"def {name}() -> str:\n    '''plug-in'''\n    return ''\n\n\n"
    code += f"def register(plugins):\n    plugins.add_tool(tool_of({name}))\n"
    (folder / "crib_pins_plugin.py").write_text(code)
    info = folder / "crib_pins_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: crib-pins-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[toolcrib.plugins]\npins = crib_pins_plugin:register\n")


def put_tool(crib: Crib, bundle: str, slug: str, description: str, version: str = "v1") -> None:
    document = {
        "schemaVersion": "1",
        "displayName": slug,
        "description": description,
        "type": "go",
        "isEnabled": True,
        "argSchema": {"type": "object", "additionalProperties": False},
        "outputSchema": {},
        "impl": {"goFunc": "echo"},
    }
    crib.bundles.put_tool(bundle, slug.replace("_", "-"), version, document)


def put_bundle(crib: Crib, bundle: str, slug: str) -> None:
    crib.bundles.put_bundle(bundle, {"slug": slug, "displayName": slug, "isEnabled": True})


def write_folder(root: Path, name: str, answer: str, version: str = "1.0.0") -> None:
    """A tool of four files, whose handler is written in Python."""
    folder = root / name.replace("_", "-")
    folder.mkdir(parents=True, exist_ok=True)
    schema = {
        "toolId": name,
        "version": version,
        "description": answer,
        "category": "utility",
        "sideEffects": "none",
        "idempotent": True,
        "requiresConfirmation": False,
        "allowedModes": ["text"],
        "latencyBudgetMs": 800,
        "parameters": {"type": "object", "additionalProperties": False, "properties": {}},
    }
    (folder / "schema.json").write_text(json.dumps(schema))
    (folder / "doc_summary.md").write_text(f"{answer}\n")
    (folder / "doc.md").write_text("# A tool\n" + "".join(f"\n## {section}\nSomething.\n" for section in SECTIONS))
    (folder / "handler.py").write_text(HANDLER.format(answer=answer))


def build(project: Path) -> None:
    with redirect_stdout(io.StringIO()):
        assert main(["build", "-C", str(project)]) == 0


class Sources:
    """A project in which each source that is wanted has a tool of one name; its description names the source."""

    def __init__(self, folder: Path, name: str, wanted: set[str]) -> None:
        self.project, self.home, self.site = folder / "project", folder / "home", folder / "site"
        for place in (self.project, self.home, self.site):
            place.mkdir(parents=True)
        self.name = name
        self.wanted = wanted
        self.modules = [label for label in ("pins_first", "pins_second") if label in wanted]

    def write(self) -> None:
        for module in self.modules:
            write_module(self.project, module, self.name)
        for folder in ("tools", "more"):
            (self.project / folder).mkdir()
            if f"plain file of {folder}" in self.wanted:
                write_plain(self.project, folder, self.name)
        if "folder of tools" in self.wanted:
            write_folder(self.project / "tools", self.name, "folder of tools")
        trees = {
            "project script": self.project / ".ai/tools",
            "user script": self.home / ".ai/tools",
            "further script": self.project / "further",
        }
        for label in self.wanted & trees.keys():
            write_script(trees[label], label, self.name)
        if "plug-in" in self.wanted:
            write_plugin(self.site, self.name)

    def open(self) -> Crib:
        return Crib(
            self.project,
            tools=[function(label, self.name) for label in sorted(self.wanted & {"host function"})],
            functions={"echo": lambda context, arguments: arguments},
            modules={"tools": self.modules},
            environment={"HOME": str(self.home)},
        )


SOURCES = {
    *("host function", "pins_first", "pins_second", "plain file of tools", "plain file of more", "folder of tools"),
    *("project script", "user script", "further script", "plug-in"),
    *("bundle alpha", "bundle beta", "disabled bundle", "tool disabled in a bundle", "builtin"),
}
BUNDLES = {
    # Written in another order than that of their slugs.
    "bundle beta": ("018faf50-b7b6-7a01-9a05-a22a6e0af101", "beta", True, True),
    "disabled bundle": ("018faf50-b7b6-7a01-9a05-a22a6e0af102", "aaa", False, True),
    "bundle alpha": ("018faf50-b7b6-7a01-9a05-a22a6e0af103", "alpha", True, True),
    "tool disabled in a bundle": ("018faf50-b7b6-7a01-9a05-a22a6e0af104", "aardvark", True, False),
}
SETTINGS = """
catalog.folders = ["tools", "more"]
scripts.folders = [".ai/tools", "~/.ai/tools", "further"]
"""


@contextmanager
def opened(folder: Path, name: str, wanted: set[str]) -> Iterator[Crib]:
    """A crib over the sources; nothing of them stays behind in this process."""
    sources = Sources(folder, name, wanted)
    sources.write()
    (sources.project / "toolcrib.toml").write_text(
        SETTINGS + f"builtins.enabled = {str('builtin' in wanted).lower()}\n"
    )
    path = list(sys.path)
    sys.path.insert(0, str(sources.site))
    try:
        if "folder of tools" in wanted:
            build(sources.project)
        with sources.open() as crib:
            for label in sorted(wanted & BUNDLES.keys()):
                bundle, slug, *_ = BUNDLES[label]
                put_bundle(crib, bundle, slug)
                put_tool(crib, bundle, name, label)
            for label in sorted(wanted & BUNDLES.keys()):
                bundle, _, bundle_on, tool_on = BUNDLES[label]
                crib.bundles.switch_tool(bundle, name.replace("_", "-"), "v1", tool_on)
                crib.bundles.switch_bundle(bundle, bundle_on)
            yield crib
    finally:
        sys.path[:] = path
        for module in [module for module in sys.modules if module.startswith(("pins_", "crib_pins"))]:
            del sys.modules[module]


@pytest.mark.parametrize("name", [NAME, EXECUTOR])
def test_of_equal_names_the_source_is_meant_that_is_pinned(tmp_path, golden, name):
    wanted = set(SOURCES) if name == NAME else {"project script", "bundle beta"}
    lines = []
    while True:
        with opened(tmp_path / str(len(lines)), name, wanted) as crib:
            entry = crib.find(name)
            if entry is None:
                break
            label = entry.tool.description if entry.tool.description in wanted else entry.tool.bundle
            lines.append(f"{label}: {entry.tool.address}{'' if entry.enabled else ' (disabled)'}")
        if label not in wanted:
            break
        wanted.remove(label)
    golden(f"names_{name}.txt", "\n".join([*lines, f"never meant: {sorted(wanted)}"]) + "\n")


LOOKUPS = (
    *("read_file", "read-file", "READ_FILE", "Read File", "readfile"),
    *("read_file@1.0.0", "read_file@2.0.0", "read_file@10.0.0", "read_file@3.0.0-beta", "read_file@9", "read_file@v1"),
    *("host/read_file", "host/read-file@2.0.0", "other/read_file", "tools/read_file", "builtin/read_file"),
    *("project/read_file", "user/read_file", "further/read_file", "plugged/read_file"),
    *("alpha/read_file", "alpha/read-file@v1", "alpha/read-file@v2", "aaa/read_file", "nowhere/read_file"),
    *("system/read_file", "python_runtime", "python-runtime", "system/python_runtime"),
    *("read_file/", "/read_file", "", " read_file ", "read_file@", "list_files", "LIST_FILES"),
)


def test_every_spelling_of_a_name_means_the_tool_that_is_pinned(tmp_path, golden):
    lines = []
    with opened(tmp_path, NAME, SOURCES - {"pins_second"}) as crib:
        for version in ("2.0.0", "10.0.0", "3.0.0-beta"):
            crib.add(function(f"host {version}", version=version))
        crib.add(function("other bundle", bundle="other"))
        put_tool(crib, BUNDLES["bundle alpha"][0], NAME, "second version", "v2")
        for name in LOOKUPS:
            entry = crib.find(name)
            meant = "nothing" if entry is None else f"{entry.tool.address} ({entry.tool.description:.30})"
            lines.append(f"{name!r}: {meant}")
        for bundle in ("alpha", BUNDLES["bundle alpha"][0], "host", "builtin"):
            for version in (None, "v1", "v2", "1.0.0"):
                result = crib.explain(Call(name=NAME, bundle=bundle, version=version))
                lines.append(f"{NAME!r} of bundle {bundle}, version {version}: {result.tool}")
    golden("name_spellings.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize("watch", [True, False])
def test_a_session_keeps_to_the_registry_that_was_in_force_when_it_began(project, watch):
    write_folder(project / "tools", "greet", "first")
    write_folder(project / "tools", "leave", "first")
    build(project)
    with Crib(project, builtins={"enabled": False}, folders={"watch": watch}) as crib:
        before = crib.session()
        assert crib.call_sync(Call(name="greet", session=before)).value == "first"
        write_folder(project / "tools", "greet", "second", "2.0.0")
        write_folder(project / "tools", "arrive", "second")
        shutil.rmtree(project / "tools" / "leave")
        build(project)
        # Without watching, a new build counts from the next start.
        now = "second" if watch else "first"
        assert crib.call_sync("greet").value == now
        assert crib.call_sync(Call(name="greet", session=before)).value == "first"
        after = crib.session()
        assert (after.tools_version != before.tools_version) is watch
        assert crib.call_sync(Call(name="greet", session=after)).value == now
        for session, answer, names in (
            (before, "first", {"greet", "leave"}),
            (after, now, {"arrive", "greet"} if watch else {"greet", "leave"}),
        ):
            assert {tool.name for tool in crib.offered("text", session)} == names
            assert crib.find("greet", session).tool.description == answer
            assert {name for name in ("greet", "leave", "arrive") if crib.find(name, session)} == names
    with Crib(project, builtins={"enabled": False}) as crib:
        assert crib.call_sync("greet").value == "second"
