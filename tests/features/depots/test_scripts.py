"""Scripts travel with what they need, and bring nothing else along."""

import hashlib
import json
from dataclasses import replace

import pytest

from toolcrib import Crib, Kind, ToolError
from toolcrib.features.depots.depot import FolderDepot
from toolcrib.features.depots.package import Manifest, Package, PackedFile, decode_manifest

SLUG = """\
__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "text"
__tool_description__ = "Turn a title into a slug"


def main(title: str) -> str:
    return title.lower().replace(" ", "-")
"""
ACTIONS = """\
tool_id: text-kit
tool_type: script
version: "1.0.0"
category: text
description: Do things with text
executor_id: subprocess
requires: [shell.execute]
config: {command: echo, args: [kit.txt]}
actions:
  upper: {description: Shout, parameters: [{name: text, type: string, required: true}]}
  lower: {description: Whisper, parameters: [{name: text, type: string, required: true}]}
"""


@pytest.fixture
def script_project(tmp_path):
    def make(name, **files):
        root = tmp_path / name
        folder = root / ".ai" / "tools" / "text"
        folder.mkdir(parents=True)
        (root / "toolcrib.toml").write_text("")
        for file, text in files.items():
            (folder / file.replace("__", ".")).write_text(text)
        return Crib(root, environment={})

    return make


async def refused_later(work) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await work
    return caught.value


async def test_a_script_arrives_where_its_category_says(script_project, depot):
    async with script_project("author", slug_it__py=SLUG) as author, script_project("user") as user:
        author.publish("slug_it", str(depot))
        pulled = await user.pull("slug_it", str(depot))
        assert pulled.written == (user.settings.root / ".ai/tools/text/slug_it.py",)
        assert (await user.call("slug_it", title="A B")).error.kind is Kind.DISABLED
        user.bundles.switch_tool(user.bundles.bundle_id_of(user.find("slug_it").tool), "slug-it", "1.0.0", True)
        assert (await user.call("slug_it", title="A B")).value == "a-b"


async def test_an_older_version_than_the_installed_one_is_pulled_only_when_it_is_named(script_project, depot, served):
    newer = SLUG.replace("1.0.0", "1.10.0")
    async with script_project("author", slug_it__py=SLUG) as author, script_project("user", slug_it__py=newer) as user:
        author.publish("slug_it", str(depot))
        mine = user.settings.root / ".ai" / "tools" / "text" / "slug_it.py"
        refusal = "the depot has slug_it@1.0.0, and 1.10.0 is installed; nothing was installed. "
        cure = "To go back name the version: crib pull slug_it@1.0.0 --replace"
        for place in (str(depot), served):
            error = await refused_later(user.pull("slug_it", place, replace=True))
            assert (error.kind, error.message) == (Kind.CONFLICT, refusal + cure)
            assert mine.read_text() == newer
        await user.pull("slug_it", str(depot), version="1.0.0", replace=True)
        assert mine.read_text() == SLUG
        (author.settings.root / ".ai" / "tools" / "text" / "slug_it.py").write_text(SLUG.replace("1.0.0", "1.2.0"))
        author.publish("slug_it", str(depot))
        assert (await user.pull("slug_it", str(depot), replace=True)).manifest.version == "1.2.0"


async def test_a_tool_that_has_only_actions_is_published_as_a_whole(script_project, depot):
    async with script_project("author", kit__yaml=ACTIONS, kit__txt="x") as author, script_project("user") as user:
        manifest = author.publish("text-kit", str(depot)).manifest
        assert [file.path for file in manifest.files] == ["text/kit.yaml", "text/kit.txt"]
        await user.pull("text-kit", str(depot))
        assert user.find("text-kit.upper") is not None
        assert user.find("text-kit.lower") is not None


OTHER = SLUG.replace("__version__", '__tool_id__ = "deploy"\n__version__')
RUNTIME = 'tool_id: python_runtime\ntool_type: runtime\nversion: "9.0.0"\ncategory: {}\ndescription: x\nexecutor_id: subprocess\nconfig: {{command: sh}}\n'


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("other/deploy.py", OTHER.replace('"text"', '"other"'), "which a package may not install"),
        ("runtimes/python_runtime.yaml", RUNTIME.format("runtimes"), "which a package may not install"),
        ("text/deploy.py", OTHER, "holds other tools besides it (deploy)"),
        ("text/node_modules/x/index.js", "module.exports = 1", "which a package may not install"),
        ("text/venv/lib/evil.py", "x = 1", "which a package may not install"),
        ("text/csv.py", "x = 1", "which a package may not install"),
        ("text/json/__init__.py", "x = 1", "which a package may not install"),
        ("text/pyvenv.cfg", "home = /", "which a package may not install"),
        ("text/Package.json", "{}", "which a package may not install"),
        ("text/a.pth", "/", "which a package may not install"),
    ],
)
async def test_a_package_that_brings_more_than_its_tool_is_refused(script_project, depot, path, text, reason):
    contents = {"text/slug_it.py": SLUG.encode(), path: text.encode()}
    files = [
        PackedFile(path=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        for name, data in contents.items()
    ]
    manifest = Manifest(
        name="slug_it",
        version="1.0.0",
        description="Turn a title into a slug",
        requires=(),
        tree="scripts",
        main="text/slug_it.py",
        files=tuple(files),
    )
    FolderDepot(depot).publish(Package(manifest=manifest, contents=contents))
    async with script_project("user") as user:
        error = await refused_later(user.pull("slug_it", str(depot)))
        assert (error.kind, reason in error.message) == (Kind.PERMANENT, True), error.message
        assert [file for file in (user.settings.root / ".ai").rglob("*") if file.is_file()] == []


async def test_what_the_manifest_hides_about_capabilities_is_refused(script_project, depot):
    async with script_project("author", slug_it__py=SLUG) as author, script_project("user") as user:
        author.publish("slug_it", str(depot))
        place = depot / "tools/slug-it/1.0.0"
        greedy = SLUG.replace("__version__", '__requires__ = ["net.http"]\n__version__')
        (place / "files/text/slug_it.py").write_text(greedy)
        manifest = decode_manifest((place / "manifest.json").read_bytes(), "x")
        digest = hashlib.sha256(greedy.encode()).hexdigest()
        file = replace(manifest.files[0], size=len(greedy), sha256=digest)
        (place / "manifest.json").write_bytes(replace(manifest, files=(file,)).encode())
        error = await refused_later(user.pull("slug_it", str(depot)))
        assert "does not hold the tool that the manifest names (slug_it@1.0.0 requiring nothing)" in error.message
        assert json.loads(json.dumps(error.details["found"])) == ["slug_it@1.0.0 requiring net.http"]


async def test_what_seems_to_be_left_behind_is_told(script_project, depot):
    code = "import helpmod, json\n" + SLUG
    files = {"slug_it__py": code, "helpmod__py": "x = 1", "own__yaml": ACTIONS.replace("subprocess", "sed-runtime")}
    async with script_project("author", **files) as author:
        assert author.publish("slug_it", str(depot)).left_behind == (
            "it imports helpmod.py, which was not packed; add: --with helpmod.py",
        )
        assert author.publish("text-kit", str(depot)).left_behind == (
            "it is executed by sed-runtime, which must be there wherever it is pulled; publish that too",
        )


async def test_nothing_is_pulled_through_a_link_that_leads_out_of_the_project(script_project, depot, tmp_path):
    async with script_project("author", slug_it__py=SLUG) as author, script_project("user") as user:
        author.publish("slug_it", str(depot))
        tree = user.settings.root / ".ai"
        tree.rename(tmp_path / "elsewhere")
        tree.symlink_to(tmp_path / "elsewhere")
        await refused_later(user.pull("slug_it", str(depot)))
        assert not list((tmp_path / "elsewhere").rglob("*.py"))
