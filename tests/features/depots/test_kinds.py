"""Depots carry bundles and tool folders too; whatever is pulled is disabled until somebody enables it."""

import asyncio
import json

import pytest

from toolcrib import Bundle, Kind, ToolError
from toolcrib.features.bundles.archive import files_of, pack
from toolcrib.features.depots.depot import FolderDepot, list_tools, open_depot
from toolcrib.features.depots.package import Manifest, Package, new_key, public_half
from toolcrib.features.depots.packed_tool import packed_file
from toolcrib.lib.names import new_id

ECHO = {
    "schemaVersion": "toolcrib-1",
    "displayName": "Echo",
    "description": "Give back what it gets.",
    "type": "go",
    "isEnabled": True,
    "argSchema": {"type": "object"},
    "outputSchema": {},
    "impl": {"goFunc": "echo"},
}


@pytest.fixture
def weather(author):
    """A stored bundle with one tool."""
    bundle_id = new_id()
    author.bundles.put_bundle(bundle_id, {"slug": "weather", "displayName": "Weather", "isEnabled": True})
    author.bundles.put_tool(bundle_id, "echo", "v1", ECHO)
    return bundle_id


@pytest.mark.spec("S1-94")
def test_a_pulled_tool_is_disabled_before_its_file_is_there(author, user, depot, cli, monkeypatch):
    author.publish("hello", str(depot))
    pulled = asyncio.run(user.pull("hello", str(depot)))
    assert pulled.to_do == "it is disabled; look at it, then enable it with: crib enable hello"
    assert user.call_sync("hello").error.kind is Kind.DISABLED
    # Pulled again, nothing arrives and nothing changes.
    monkeypatch.chdir(user.settings.root)
    assert cli("enable", "hello").code == 0
    ended = cli("pull", "hello", "--from", str(depot))
    assert (ended.code, "all there already" in ended.out, ended.err) == (0, True, "")
    assert cli("call", "hello").out == "Hello, World!\n"


@pytest.mark.spec("S1-93", "S1-94")
async def test_a_bundle_is_published_signed_and_pulled_disabled(author, weather, project_of, depot, tmp_path):
    key = tmp_path / "key"
    new_key(key)
    manifest = author.publish_bundle("weather", "1.2.0", str(depot), key=key).manifest
    assert (manifest.tree, manifest.main, manifest.requires) == ("bundles", "weather.zip", ())
    assert await list_tools(open_depot(str(depot))) == {"weather": ["1.2.0"]}
    settings = f'[depots]\nsigned = true\nkeys = ["{public_half(key)}"]\n'
    async with project_of("reader", settings) as reader:
        pulled = await reader.pull("weather", str(depot))
        assert pulled.signed.startswith("signed by the trusted key")
        assert (pulled.bundle, pulled.written) == ("weather", ())
        assert "crib enable 'weather/*'" in pulled.to_do
        stored = reader.bundles.bundle(weather)
        assert (stored.slug, stored.enabled) == ("weather", False)
        assert reader.bundles.export_bundle(weather) != b""
        with pytest.raises(ToolError, match="nothing was imported") as caught:
            await reader.pull("weather", str(depot), replace=True)
        assert caught.value.kind is Kind.CONFLICT


def test_a_bundle_needs_a_version_and_a_tool_has_its_own(author, weather, depot, cli, monkeypatch):
    monkeypatch.chdir(author.settings.root)
    assert "--version X.Y.Z" in cli("publish", "weather/*", "--to", str(depot)).err
    assert "--version X.Y.Z" in cli("publish", "hello", "--to", str(depot), "--version", "1.0.0").err
    assert cli("publish", "weather/*", "--to", str(depot), "--version", "v1").code != 0
    ended = cli("publish", "weather/*", "--to", str(depot), "--version", "1.0.0")
    assert (ended.code, ended.out.splitlines()[0]) == (0, f"published weather@1.0.0 to {depot}")
    assert cli("publish", "nothing/*", "--to", str(depot), "--version", "1.0.0").code != 0


def test_a_bundle_and_a_tool_do_not_share_a_name(author, depot):
    author.bundles.put_bundle(new_id(), {"slug": "hello", "displayName": "Hello", "isEnabled": True})
    author.publish("hello", str(depot))
    with pytest.raises(ToolError, match="holds a tool hello; publish this one to another depot"):
        author.publish_bundle("hello", "2.0.0", str(depot))


@pytest.mark.parametrize(
    ("slug", "requires"), [("other", ()), ("weather", ("net.http",))], ids=["another bundle", "other capabilities"]
)
async def test_an_archive_that_is_not_what_its_manifest_says_is_refused(user, depot, slug, requires):
    documents = [{**ECHO, "slug": "echo", "version": "v1"}]
    data = pack(files_of(Bundle(id=new_id(), slug=slug, display_name="X"), documents))
    manifest = Manifest(
        name="weather",
        version="1.0.0",
        description="",
        requires=requires,
        tree="bundles",
        main="weather.zip",
        files=(packed_file("weather.zip", data),),
    )
    FolderDepot(depot).publish(Package(manifest=manifest, contents={"weather.zip": data}))
    with pytest.raises(ToolError, match="does not hold what the manifest names") as caught:
        await user.pull("weather", str(depot))
    assert caught.value.kind is Kind.PERMANENT
    assert [bundle for bundle in user.bundles.list_bundles().items if bundle.slug == "weather"] == []


@pytest.fixture
def folder_project(project_of, cli, monkeypatch):
    """A project with a tool folder that was built."""
    with project_of("folders") as crib:
        monkeypatch.chdir(crib.settings.root)
    assert cli("new", "count-words", "--python").code == 0
    assert cli("build").code == 0
    return project_of


def test_a_tool_folder_is_published_whole_and_pulled_to_be_built(folder_project, user, depot, cli, monkeypatch):
    with folder_project("folders") as author:
        manifest = author.publish("count_words", str(depot)).manifest
        root = author.settings.root
    names = sorted(path.name for path in (root / "tools" / "count-words").iterdir() if path.is_file())
    assert (manifest.tree, sorted(file.path.rpartition("/")[2] for file in manifest.files)) == ("folders", names)
    monkeypatch.chdir(user.settings.root)
    ended = cli("pull", "count_words", "--from", str(depot))
    assert ended.code == 0, ended.err
    assert "it can be called once it is built: crib build" in ended.err
    for name in names:
        pulled = user.settings.root / "tools" / "count-words" / name
        assert pulled.read_bytes() == (root / "tools" / "count-words" / name).read_bytes()
    assert cli("build").code == 0
    assert json.loads(cli("call", "count_words", "text=a b c", "--json").out)["value"] == {"words": 3}


async def test_a_tool_folder_is_not_replaced_by_an_older_version_unless_that_is_named(folder_project, user, depot):
    async with folder_project("folders") as author:
        author.publish("count_words", str(depot))
    pulled = await user.pull("count_words", str(depot))
    schema = user.settings.root / "tools" / pulled.manifest.main
    schema.write_text(schema.read_text().replace('"1.0.0"', '"1.2.0"'))
    refusal = "the depot has count_words@1.0.0, and 1.2.0 is installed; nothing was installed. "
    with pytest.raises(ToolError, match=refusal):
        await user.pull("count_words", str(depot), replace=True)
    assert '"1.2.0"' in schema.read_text()
    await user.pull("count_words", str(depot), version="1.0.0", replace=True)
    assert '"1.0.0"' in schema.read_text()


async def test_a_tool_folder_that_is_not_what_its_manifest_says_is_refused(folder_project, user, depot):
    async with folder_project("folders") as author:
        package = author._depots.publish(author.find("count_words").tool, str(depot)).manifest
    place = depot / "tools" / "count-words" / "1.0.0"
    assert place.is_dir()
    schema = json.loads((place / "files" / package.main).read_text())
    contents = {file.path: (place / "files" / file.path).read_bytes() for file in package.files}
    contents[package.main] = json.dumps({**schema, "requires": ["net.http"]}).encode()
    manifest = Manifest(
        name=package.name,
        version="1.0.1",
        description="",
        requires=(),
        tree="folders",
        main=package.main,
        files=tuple(packed_file(path, data) for path, data in contents.items()),
    )
    FolderDepot(depot).publish(Package(manifest=manifest, contents=contents))
    with pytest.raises(ToolError, match="is not the tool folder that the manifest names"):
        await user.pull("count_words", str(depot), version="1.0.1")
    assert not (user.settings.root / "tools" / "count-words").exists()


async def test_a_tool_of_a_folder_below_is_published_without_its_bundle(project_of, depot):
    async with project_of("author") as author:
        folder = author.settings.root / "tools/billing/eu"
        folder.mkdir(parents=True)
        (folder / "hello.py").write_text('def hello() -> str:\n    """Greet."""\n    return "hi"\n')
        published = author.publish("billing-eu/hello", str(depot))
    assert (published.manifest.main, [file.path for file in published.manifest.files]) == ("hello.py", ["hello.py"])
    async with project_of("user") as user:
        await user.pull("hello", str(depot))
        assert [tool.address for tool in user.tools if tool.bundle != "builtin"] == ["tools/hello@1.0.0"]
