"""The registry of parts, and the Resources of a Crib."""

import ast
import importlib
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import toolcrib
from toolcrib import Crib, SettingsError
from toolcrib.core.plugins import CLOSING, FEATURES, Plugins
from toolcrib.core.resources import Resources
from toolcrib.infra.settings import load_settings
from toolcrib.lib import load

SOURCE = Path(toolcrib.__file__).parent
EXAMPLE = SOURCE.parents[1] / "examples/plugin"
# What a plug-in of ours may name besides modules of its own feature: the layers below features.
BELOW = ("toolcrib.toolkit.", "toolcrib.core.", "toolcrib.infra.", "toolcrib.lib.", "toolcrib.model.")
# The only files that load a part by a text.
LOADERS = ("__init__.py", "__main__.py", "core/plugins.py", "interfaces/cli/__init__.py")
# The only files that import a module by its name: what LOADERS call, modules of the host program, those of agent code, files of tools.
IMPORTERS = (
    *("lib/__init__.py", "features/functions/host_modules.py", "features/agent_classes/import_paths.py"),
    "infra/sandbox/child/python_file.py",
)
LAYERS = ("interfaces", "crib", "client", "features", "toolkit", "core", "infra", "lib", "model", "values")


def registered_by(reference: str) -> Plugins:
    """A registry in which one feature has registered and nothing else."""
    plugins = Plugins({})
    load(reference)(plugins)
    return plugins


def added_by(reference: str) -> set[str]:
    parts = registered_by(reference)._parts
    return {f"{kind}:{part.name}" if part.name else kind for kind, found in parts.items() for part in found}


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str, module: str) -> None:
    """Leave behind what installing a package with this module would."""
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[toolcrib.plugins]\n{module} = {module}:register\n")
    monkeypatch.syspath_prepend(str(folder))
    # Set and removed, so that it is forgotten after the test even if it was not there before.
    monkeypatch.setitem(sys.modules, module, sys)
    del sys.modules[module]


@pytest.fixture
def resources():
    made = Resources(load_settings(None, {}, {}), {}, plugins=Plugins({}))
    made.log = []
    return made


class Closing:
    """A resource that says when it is closed."""

    def __init__(self, resources, name):
        self._say = lambda: resources.log.append(name)

    def close(self):
        self._say()


class TestTheTable:
    @pytest.mark.parametrize("reference", FEATURES)
    def test_a_row_says_exactly_what_the_feature_adds(self, reference):
        said = {provided.rstrip(":") for provided in FEATURES[reference]}
        # A kind without a name stands for every name of it.
        added = {part if part in said else part.partition(":")[0] for part in added_by(reference)}
        assert said == added

    def test_every_feature_has_a_row(self):
        features = {f"toolcrib.features.{file.parent.name}:register" for file in SOURCE.glob("features/*/__init__.py")}
        assert features
        assert features <= set(FEATURES)

    @pytest.mark.parametrize("reference", FEATURES)
    def test_every_reference_of_a_feature_resolves_within_the_feature_or_below_it(self, reference):
        own = reference.rpartition(":")[0] + "."
        parts = [part for found in registered_by(reference)._parts.values() for part in found]
        named = [part.value for part in parts if isinstance(part.value, str)]
        assert [name for name in named if load(name) is None] == []
        assert [name for name in named if not name.startswith((own, *BELOW))] == []

    @pytest.mark.parametrize("file", sorted(SOURCE.glob("features/*/__init__.py")), ids=lambda file: file.parent.name)
    def test_what_registers_a_feature_imports_no_module_of_one(self, file):
        tree = ast.parse(file.read_text())
        imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert [name for name in imported if name.startswith("toolcrib.features")] == []

    def test_only_the_registry_and_the_entries_load_parts_by_a_text(self):
        texts = {file.relative_to(SOURCE).as_posix(): file.read_text() for file in SOURCE.rglob("*.py")}
        users = [
            name
            for name, text in texts.items()
            if re.search(r"from toolcrib\.lib import [^\n]*\bload\b|lib\.load\(", text)
        ]
        assert set(LOADERS) <= set(users)
        assert [name for name in users if not name.startswith(LOADERS)] == []

    def test_only_few_files_import_a_module_by_its_name(self):
        texts = {file.relative_to(SOURCE).as_posix(): file.read_text() for file in SOURCE.rglob("*.py")}
        assert sorted(name for name, text in texts.items() if "import_module(" in text) == sorted(IMPORTERS)

    def test_what_is_imported_later_lies_in_the_same_feature_or_a_lower_layer(self):
        found = {
            (file.relative_to(SOURCE).parts[:-1], tuple(target.split(".")))
            for file in SOURCE.rglob("*.py")
            for target in re.findall(r'\blater\(\s*"toolcrib\.([\w.]+):', file.read_text())
        }
        assert found
        others = [(ours, theirs) for ours, theirs in found if ours[:2] != theirs[:2]]
        assert [pair for pair in others if LAYERS.index(pair[0][0]) >= LAYERS.index(pair[1][0])] == []

    def test_to_ask_for_one_part_loads_only_the_features_that_provide_it(self):
        plugins = Plugins()
        assert [part.name for part in plugins.parts("runners", "handler")] == ["handler"]
        assert {reference for reference in FEATURES if reference not in plugins._waiting} == {
            "toolcrib.features.folders:register"
        }

    def test_what_closes_something_is_registered_at_the_start(self):
        plugins = Plugins()
        plugins.start()
        closing = {row for row, provides in FEATURES.items() if any(word in CLOSING for word in provides)}
        assert closing
        assert closing.isdisjoint(plugins._waiting)


class TestFeaturesOfOurs:
    def test_one_that_cannot_register_refuses_the_start(self, monkeypatch, tmp_path):
        (tmp_path / "broken_feature.py").write_text("def register(plugins):\n    raise OSError('no disk')\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        plugins = Plugins({"broken_feature:register": ("rules",)})
        with pytest.raises(SettingsError, match=r"broken_feature:register\): OSError\('no disk'\); install toolcrib"):
            plugins.start()

    def test_one_that_is_loaded_later_is_tried_by_what_checks_the_settings(self):
        plugins = Plugins({"toolcrib_gone:register": ("resources:gone",)})
        plugins.start()
        with pytest.raises(SettingsError, match="No module named 'toolcrib_gone'"):
            Resources(load_settings(None, {}, {}), {}, plugins=plugins).check_settings()

    def test_one_that_is_not_there_refuses_the_start(self):
        with pytest.raises(SettingsError, match="No module named 'toolcrib_gone'"):
            Plugins({"toolcrib_gone:register": ("rules",)}).start()


class TestOtherPackages:
    def test_one_that_fails_is_reported_and_the_others_register(self, tmp_path, monkeypatch):
        failing, working = tmp_path / "failing", tmp_path / "working"
        failing.mkdir()
        working.mkdir()
        install(failing, monkeypatch, "def register(plugins):\n    raise OSError('no disk')\n", "crib_failing")
        code = "from toolcrib import tool_of\n\ndef hello() -> str:\n    'Greet.'\n    return 'hello'\n"
        code += "\ndef register(plugins):\n    plugins.add_tool(tool_of(hello))\n"
        install(working, monkeypatch, code, "crib_working")
        with Crib() as crib:
            assert crib.call_sync("hello").value == "hello"
            assert [problem.message for problem in crib.problems] == [
                "the plug-in crib_failing:register failed: OSError('no disk'); mend its package or remove it"
            ]

    @pytest.mark.parametrize(
        "added",
        [
            "'crib_broken:Gone', suffixes=['.broken']",
            "'crib_gone:Format', stored='broken'",
            "Fails(), suffixes=['.broken']",
            "Fails(), folder='broken.txt'",
            "Fails()",
        ],
    )
    def test_a_format_that_cannot_be_used_affects_only_its_own_files(self, added, tmp_path, monkeypatch):
        code = "class Fails:\n    name = 'fails'\n    def reads(self, path):\n        raise OSError('no disk')\n"
        code += "    def read(self, path, code):\n        return ()\n"
        install(
            tmp_path, monkeypatch, code + f"def register(plugins):\n    plugins.add_format({added})\n", "crib_broken"
        )
        files = {"tools/one.broken": b"", "tools/two/broken.txt": b"", ".toolcrib/broken/three": b""}
        files["tools/two/__init__.py"] = b""
        files["tools/hello.py"] = b"def hello() -> str:\n    'Greet.'\n    return 'hello'\n"
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(text)
        with Crib(tmp_path, builtins={"enabled": False}) as crib:
            assert [each.name for each in crib.tools] == ["hello"]
            [problem] = crib.problems
            assert re.search(
                r"crib_(broken|gone):\w+' of a plug-in failed: \w+Error|broken.*the format 'fails' failed",
                str(problem),
            )

    @pytest.mark.parametrize("made", ["1 / 0", "(1 / 0 for _ in 'one')"], ids=["made at once", "as a generator"])
    def test_a_source_that_cannot_be_made_is_reported_and_rules_that_cannot_refuse_the_start(
        self, tmp_path, monkeypatch, made
    ):
        code = f"def register(plugins):\n    plugins.add_{{}}('sour', lambda resources: {made})\n"
        install(tmp_path, monkeypatch, code.format("source"), "crib_sour")
        message = (
            "the part 'sour' of a plug-in failed: ZeroDivisionError('division by zero'); mend its package or remove it"
        )
        with Crib() as crib:
            assert [problem.message for problem in crib.problems] == [message]
        (tmp_path / "crib_sour.py").write_text(code.format("rules"))
        monkeypatch.delitem(sys.modules, "crib_sour")
        importlib.invalidate_caches()
        with pytest.raises(toolcrib.ToolError, match=re.escape(message)):
            Crib()

    def test_a_runner_that_cannot_bind_a_tool_is_a_problem_of_that_tool(self, tmp_path, monkeypatch):
        code = "from toolcrib import Tool\nclass Run:\n    kind = 'odd'\n    def identity(self):\n        return {}\n"
        code += "class Runner:\n    def bind(self, tool):\n        raise OSError('no disk')\n    async def close(self): pass\n"
        code += "def register(plugins):\n    plugins.add_runner('odd', Runner())\n"
        code += "    plugins.add_tool(Tool(name='odd', description='Odd.', parameters={'type': 'object'}, run=Run()))\n"
        install(tmp_path, monkeypatch, code, "crib_odd")
        with Crib() as crib:
            tool = crib.find("odd").tool
            assert crib.problems_of(tool) == ["odd failed unexpectedly (OSError); the log has the details"]

    def test_one_that_is_installed_meanwhile_is_found_by_the_next_crib(self, tmp_path, monkeypatch):
        info = tmp_path / "crib_late-1.0.dist-info"
        info.mkdir()
        monkeypatch.syspath_prepend(str(tmp_path))
        then = tmp_path.stat().st_mtime_ns
        with Crib() as crib:
            assert not crib.problems
        info.rmdir()
        install(tmp_path, monkeypatch, "def register(plugins):\n    raise OSError('no disk')\n", "crib_late")
        # As where an archive with times is unpacked: nothing that is remembered of the folder may stand for its packages.
        os.utime(tmp_path, ns=(then, then))
        with Crib() as crib:
            assert [str(problem).partition(" failed")[0] for problem in crib.problems] == [
                "the plug-in crib_late:register"
            ]

    def test_a_part_of_a_package_replaces_ours_of_the_same_name_and_stands_behind_ours_in_a_list(self):
        plugins = Plugins()
        plugins.add_maker("person", object())
        assert [part.name for part in plugins.parts("makers")] == ["person", "command", "openai", "person"]
        assert plugins.named("makers")["person"] is plugins.parts("makers")[-1]

    @pytest.fixture
    def project(self, tmp_path, monkeypatch):
        """The project of the example, with its package installed."""
        site = tmp_path / "site"
        site.mkdir()
        install(site, monkeypatch, (EXAMPLE / "crib_templates.py").read_text(), "crib_templates")
        return Path(shutil.copytree(EXAMPLE / "project", tmp_path / "project"))

    def test_its_format_reads_single_files(self, project):
        with Crib(project) as crib:
            result = crib.call_sync("invitation", guest="Ada", place="Oslo", day="Friday")
            assert result.value == "Dear Ada, come to Oslo on Friday!"
            assert crib.find("invitation").tool.address == "tools/invitation@1.0.0"

    def test_its_table_of_settings_is_read_like_ours(self, project):
        (project / "toolcrib.toml").write_text("[templates]\nmax_letters = 4\n")
        with Crib(project) as crib:
            error = crib.call_sync("apology", guest="Ada", what="the rain").error
        assert error.message == "what is longer than 4 letters; shorten it"
        with Crib(project, templates={"max_letters": 50}) as crib:
            assert crib.call_sync("apology", guest="Ada", what="the rain").ok

    def test_its_format_reads_folders(self, project):
        with Crib(project) as crib:
            assert (
                crib.call_sync("apology", guest="Ada", what="the rain").value == "Dear Ada, I am sorry about the rain."
            )

    def test_its_format_reads_stored_documents_and_sees_new_ones(self, project):
        with Crib(project) as crib:
            assert crib.find("farewell") is None
            crib._resources.data.store.create("templates/farewell", b"Say goodbye.\nGoodbye, {guest}!")
        with Crib(project) as crib:
            assert crib.call_sync("farewell", guest="Ada").value == "Goodbye, Ada!"
            crib._resources.data.store.replace("templates/farewell", b"Say goodbye.\n{not a name}")
        with Crib(project) as crib:
            assert crib.find("farewell") is None
            assert "templates/farewell: a name in braces is one word" in crib.problems[0].message

    def test_its_source_is_asked_behind_files_and_before_built_in_tools(self, project):
        with Crib(project) as crib:
            assert crib.call_sync("thanks", guest="Ada").value == "Thank you, Ada!"
            assert crib.find("greeting").tool.address == "phrases/greeting@1.0.0"
            (project / "tools" / "greeting.template").write_text("Greet.\nGood day, {guest}!")
            assert crib.find("greeting").tool.address == "tools/greeting@1.0.0"
            assert crib.same_name(crib.find("greeting").tool) == ["phrases/greeting@1.0.0"]
        with Crib(project, catalog={"disabled": ["phrases/*"]}) as crib:
            assert not crib.find("thanks").enabled


class TestResources:
    def test_each_is_made_once_and_the_newest_is_closed_first(self, resources):
        for name in ("first", "second", "third"):
            resources.plugins.add_resource(
                name, Closing, given=lambda each, name=name: {"resources": each, "name": name}
            )
        assert resources.get("second") is resources.get("second")
        resources.get("first")
        importlib.import_module("asyncio").run(resources.close())
        assert resources.log == ["first", "second"]

    def test_what_is_lent_is_used_and_not_closed(self, resources):
        lent = Closing(resources, "lent")
        resources.lend(sandbox=lent)
        assert resources.get("sandbox") is lent
        importlib.import_module("asyncio").run(resources.close())
        assert resources.log == []

    def test_a_name_that_nothing_provides_is_refused(self, resources):
        with pytest.raises(toolcrib.ToolError, match="no part of resources is called 'nonsense'"):
            resources.get("nonsense")

    def test_one_runner_runs_all_kinds_that_it_is_registered_for(self):
        with Crib() as crib:
            runners = crib._resources.runners
            kinds = [runners.get(kind) for kind in ("docker", "subprocess", "runtime")]
            made = [runner._make(runner._parts[0]) for runner in kinds]
            assert made[0] is made[1] is made[2]
            assert runners.get("nonsense") is None
