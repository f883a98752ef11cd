"""Bundles as ZIP archives: what comes back is what went out, and what is wrong changes nothing."""

import io
import json
import subprocess
import sys
import zipfile

import pytest

from toolcrib import Bundle, Kind, ToolError
from toolcrib.features.bundles.archive import MANIFEST, files_of, pack, unpack
from toolcrib.features.bundles.definition import bundle_to_wire, tool_to_wire
from toolcrib.features.bundles.facade import Bundles
from toolcrib.infra.search.index import Index
from toolcrib.infra.storage.file_store import FileStore
from toolcrib.lib.names import new_id
from toolcrib.lib.zip_archive import read_archive, write_archive
from warm_python import WarmPython

# What a store says by itself.
OF_THE_STORE = {"createdAt", "modifiedAt", "toggledAt", "toolID", "bundleID", "warnings"}


@pytest.fixture
def weather(bundles, bundle_document, tool_document):
    """A bundle with four tools, one of them disabled."""
    bundle_id = new_id()
    bundles.put_bundle(bundle_id, bundle_document("weather", description="The sky ☂"))
    for slug, version in [("forecast", "v1"), ("forecast", "V1"), ("größe", "1.0.0"), ("-rain", "v1")]:
        bundles.put_tool(bundle_id, slug, version, tool_document(tags=["sky"], **{"x-note": {"b": 1, "a": 2}}))
    bundles.switch_tool(bundle_id, "forecast", "v1", False)
    return bundle_id


def tools_of(bundles, bundle_id):
    page = bundles.list_tools(bundle_ids=(bundle_id,), include_disabled=True)
    wires = [tool_to_wire(bundles.tool(bundle_id, kept.slug, kept.version)) for kept in page.items]
    dropped = OF_THE_STORE | {"effectiveEnabled", "disabledReason", "callCount", "lastCalledAt"}
    return {
        (wire["slug"], wire["version"]): {name: value for name, value in wire.items() if name not in dropped}
        for wire in wires
    }


def empty(bundles, bundle_id):
    """Remove the tools of a bundle, and delete it."""
    for slug, version in tools_of(bundles, bundle_id):
        bundles.delete_tool(bundle_id, slug, version)
    bundles.delete_bundle(bundle_id)


@pytest.mark.spec("S1-93", "S1-94")
def test_a_bundle_comes_back_as_it_went_out_and_disabled(shop, bundles, weather):
    archive = bundles.export_bundle(weather)
    before, said = tools_of(bundles, weather), bundle_to_wire(bundles.bundle(weather))
    empty(bundles, weather)
    shop.clock.pass_by(60)
    imported = bundles.import_bundle(weather, archive)
    assert tools_of(bundles, weather) == before
    now = bundle_to_wire(bundles.bundle(weather))
    assert {key for key in said if said[key] != now[key]} == {"isEnabled", "createdAt", "modifiedAt"}
    assert imported.enabled is False
    # Its tools have their own switches, and none can be used until the bundle is enabled.
    assert not any(kept.usable for kept in bundles.list_tools(bundle_ids=(weather,), include_disabled=True).items)
    bundles.switch_bundle(weather, True)
    usable = {(kept.slug, kept.version) for kept in bundles.list_tools(bundle_ids=(weather,)).items if kept.usable}
    assert usable == before.keys() - {("forecast", "v1")}
    assert [found.kept.slug for found in bundles.search("größe").items] == ["größe"]
    assert bundles.export_bundle(weather) == archive


@pytest.mark.spec("S1-93")
def test_an_archive_holds_the_documents_and_their_hashes_and_nothing_of_the_store(bundles, weather):
    archive = bundles.export_bundle(weather)
    with zipfile.ZipFile(io.BytesIO(archive)) as found:
        files = {name: json.loads(found.read(name)) for name in found.namelist()}
    manifest = files.pop(MANIFEST)
    assert manifest["format"] == "toolcrib-bundle-1"
    assert [file["path"] for file in manifest["files"]] == sorted(files)
    assert set(files) == {
        *("bundle.json", "tools/forecast@v1.json", "tools/forecast@_v1.json", "tools/gr_0f6__0df_e@1.0.0.json"),
        "tools/_02d_rain@v1.json",
    }
    assert not {"createdAt", "modifiedAt", "toolID", "digest", "callCount"} & files["tools/forecast@v1.json"].keys()
    assert bundles.export_bundle(weather) == archive


@pytest.mark.spec("S1-94")
def test_an_archive_can_be_imported_as_another_bundle_and_enabled_at_once(bundles, weather):
    archive, other = bundles.export_bundle(weather), new_id()
    made = bundles.import_bundle(other, archive, slug="climate", enable=True)
    assert (made.id, made.slug, made.enabled) == (other, "climate", True)
    ids = {kept.id for kept in bundles.list_tools(include_disabled=True).items}
    assert len(ids) == 8
    assert {**tools_of(bundles, other)}.keys() == tools_of(bundles, weather).keys()


@pytest.mark.spec("S1-94")
def test_a_bundle_that_is_there_is_a_conflict_and_stays_as_it_is(shop, bundles, weather, tool_document):
    archive = bundles.export_bundle(weather)
    bundles.delete_tool(weather, "forecast", "V1")
    before = shop.store.stamps("bundles/")
    for bundle_id, slug in [(weather, ""), (weather, "climate"), (new_id(), "")]:
        with pytest.raises(ToolError, match="nothing was imported") as caught:
            bundles.import_bundle(bundle_id, archive, slug=slug)
        assert caught.value.kind is Kind.CONFLICT
    assert shop.store.stamps("bundles/") == before


def test_an_archive_is_not_imported_under_the_name_or_id_of_other_tools(bundles, weather):
    archive = bundles.export_bundle(weather)
    with pytest.raises(ToolError, match="belongs to tools of another source"):
        bundles.import_bundle(new_id(), archive, slug="builtin")
    with pytest.raises(ToolError, match="not the id of a bundle"):
        bundles.import_bundle("weather", archive)


def changed(archive, **files):
    """The archive with other files and their right hashes; None leaves one out."""
    found = {path: content for path, content in read_archive(archive).items() if path != MANIFEST}
    for path, content in files.items():
        found.pop(path, None)
        if content is not None:
            found[path] = content if isinstance(content, bytes) else json.dumps(content).encode()
    return pack(found)


@pytest.mark.spec("S1-94")
@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"bundle.json": None}, "bundle.json is missing"),
        ({"bundle.json": b"[]"}, "is not a JSON object"),
        ({"bundle.json": b"{"}, "bundle.json:1:2"),
        ({"bundle.json": {"slug": "a_b", "displayName": "x"}}, "slug"),
        ({"readme.txt": b"hello"}, "readme.txt:1:1"),
        ({"tools/other@v1.json": {"slug": "forecast", "version": "v1"}}, "is not the path of a tool"),
        ({"tools/a@v1.json": {"slug": "a", "version": "v1"}}, "displayName"),
        ({"tools/a@v1.json": b'{"slug": "a", "slug": "a", "version": "v1"}'}, "tools/a@v1.json"),
        ({"tools/a@v1.json": b"[" * 100_000}, "tools/a@v1.json"),
    ],
)
def test_an_archive_with_one_bad_file_imports_nothing(shop, bundles, weather, files, words):
    archive = changed(bundles.export_bundle(weather), **files)
    empty(bundles, weather)
    before = shop.store.stamps("bundles/")
    with pytest.raises(ToolError) as caught:
        bundles.import_bundle(weather, archive)
    assert words in caught.value.message
    assert shop.store.stamps("bundles/") == before


@pytest.mark.spec("S1-94")
def test_an_archive_whose_files_are_not_those_of_its_manifest_is_refused(bundles, weather):
    files = read_archive(bundles.export_bundle(weather))
    manifest = json.loads(files[MANIFEST])
    first, *rest = manifest["files"]
    for listed, words in [
        (rest, "bundle.json"),
        ([first, first, *rest], "listed twice"),
        ([{**first, "sha256": "0" * 64}, *rest], "its hash differs"),
        ([{**first, "sha256": None}, *rest], "its hash differs"),
        ([{**first, "bytes": 1}, *rest], "its size"),
        ("everything", "are not those"),
        ([*manifest["files"], {"path": "tools/more.json"}], "tools/more.json"),
    ]:
        told = json.dumps({**manifest, "files": listed}).encode()
        with pytest.raises(ToolError, match=words):
            unpack(write_archive({**files, MANIFEST: told}))
    with pytest.raises(ToolError, match="crib bundle load"):
        unpack(write_archive({path: content for path, content in files.items() if path != MANIFEST}))
    with pytest.raises(ToolError, match="only 'toolcrib-bundle-1' is known here"):
        unpack(write_archive({**files, MANIFEST: b'{"format": "toolcrib-bundle-2"}'}))


@pytest.mark.spec("S1-93")
def test_a_document_with_the_value_of_a_secret_is_not_exported(shop, weather):
    bundles = shop.open(holds_secret=lambda text: "Weather report" in text)
    with pytest.raises(ToolError, match=r"tools/\S+ holds the value of a stored secret") as caught:
        bundles.export_bundle(weather)
    assert "Weather report" not in caught.value.message


def test_a_broken_document_is_named_and_keeps_the_bundle_from_being_exported(file_shop, bundle_document, tool_document):
    bundles, bundle_id = file_shop.open(), new_id()
    bundles.put_bundle(bundle_id, bundle_document())
    bundles.put_tool(bundle_id, "forecast", "v1", tool_document())
    file_shop.path(bundle_id, "forecast@v1.json").write_text("{")
    with pytest.raises(ToolError, match=r"forecast@v1\.json:1.*then export the bundle"):
        bundles.export_bundle(bundle_id)


def test_a_document_that_was_edited_by_hand_is_exported_as_it_reads(file_shop, bundle_document, tool_document):
    bundles, bundle_id = file_shop.open(), new_id()
    bundles.put_bundle(bundle_id, bundle_document())
    bundles.put_tool(bundle_id, "forecast", "v1", tool_document())
    path = file_shop.path(bundle_id, "forecast@v1.json")
    path.write_text("// mine\n" + path.read_text().replace("Weather report", "The sky"))
    assert unpack(bundles.export_bundle(bundle_id)).tools["tools/forecast@v1.json"]["displayName"] == "The sky"


@pytest.mark.spec("S1-91", "S1-94")
def test_more_tools_than_there_may_be_are_not_imported(shop, weather):
    bundles = shop.open(max_tools=7)
    with pytest.raises(ToolError, match=r"bundles\.max_tools is 7") as caught:
        bundles.import_bundle(new_id(), bundles.export_bundle(weather), slug="climate")
    assert caught.value.kind is Kind.LIMIT_EXCEEDED
    assert shop.open(max_tools=8).import_bundle(new_id(), bundles.export_bundle(weather), slug="climate")


def test_a_bundle_with_more_tools_than_an_archive_holds_is_not_exported():
    documents = ({"schemaVersion": "x", "slug": f"t{number}", "version": "v1"} for number in range(1_999))
    with pytest.raises(ToolError, match="an archive holds 1998; split it"):
        files_of(Bundle(id=new_id(), slug="many"), documents)


@pytest.mark.spec("S1-94")
def test_the_name_of_a_secret_is_no_argument_of_an_imported_tool(shop, weather):
    archive = shop.open().export_bundle(weather)
    with pytest.raises(ToolError, match="is the name of a secret"):
        shop.open(secrets=lambda: ["city"]).import_bundle(new_id(), archive, slug="climate")


IMPORTER = """
import os, signal, sys
from pathlib import Path
from toolcrib.features.bundles.facade import Bundles
from toolcrib.infra.files import Disk
from toolcrib.infra.search.index import Index
from toolcrib.infra.storage.file_store import FileStore

class Deadly(Disk):
    left = int(sys.argv[3])

def deadly(name):
    real = getattr(Disk, name)
    def call(self, *given, **more):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, *given, **more)
    return call

for name in ("open", "write", "overwrite", "sync", "rename", "exchange", "make_folder", "touch", "sync_files"):
    setattr(Deadly, name, deadly(name))
bundles = Bundles(FileStore(Path(sys.argv[1]), disk=Deadly()), Index(None), entries=list, functions={}, key=bytes)
bundles.import_bundle(sys.argv[2], Path(sys.argv[4]).read_bytes())
print("done")
"""


@pytest.mark.spec("S1-94")
@pytest.mark.parametrize("deleted", [False, True], ids=["new", "deleted before"])
def test_an_import_that_is_killed_at_any_point_leaves_the_whole_bundle_or_none(
    tmp_path, bundle_document, tool_document, deleted
):
    bundle_id, file = new_id(), tmp_path / "weather.zip"
    documents = [{**tool_document(), "slug": f"t{number}", "version": "v1"} for number in range(2)]
    file.write_bytes(pack(files_of(Bundle(id=bundle_id, slug="weather", display_name="W"), documents)))
    whole = {"bundle.json", "t0@v1.json", "t1@v1.json"}
    old = {"bundle.json"} if deleted else set()
    outcomes = []
    for point in range(1, 100):
        root = tmp_path / str(point)
        store = FileStore(root)
        bundles = Bundles(store, Index(None), entries=list, functions={}, key=bytes)
        if deleted:
            bundles.put_bundle(bundle_id, bundle_document("weather"))
            bundles.delete_bundle(bundle_id)
        run = WarmPython(
            [sys.executable, "-c", IMPORTER, str(root), bundle_id, str(point), str(file)],
            stdout=subprocess.PIPE,
            text=True,
        )
        said, _ = run.communicate(timeout=60)
        found = {key.rpartition("/")[2] for key in FileStore(root).keys("bundles/")}
        assert found in (old, whole), point
        # What the killed process left is gone, and the archive can be imported after all.
        assert list(root.rglob(".crib-*")) == []
        if found == old:
            assert bundles.import_bundle(bundle_id, file.read_bytes()).slug == "weather"
        bundles.close()
        outcomes.append(found == whole)
        if said == "done\n":
            break
    assert said == "done\n"
    # Some were killed before the one step that counts, and some after it.
    assert {True, False} == set(outcomes)
