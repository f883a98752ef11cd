"""Writing bundles and tools: what is refused, and what stays as it is."""

import json
import re

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.bundles.stored_documents import etag_of
from toolcrib.lib.names import is_uuid7, new_id, stable_id
from toolcrib.model.tool import Entry

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def refused(kind, door, *arguments, **more):
    with pytest.raises(ToolError) as caught:
        door(*arguments, **more)
    assert caught.value.kind is kind, caught.value
    return caught.value


@pytest.mark.spec("S1-54", "S1-25", "S1-50")
def test_a_bundle_is_created_with_times_of_the_store(bundles, bundle_document, shop):
    id_ = new_id()
    bundle, is_new = bundles.put_bundle(id_, bundle_document("acme", createdAt="1999-01-01T00:00:00Z"))
    assert is_new
    assert (bundle.id, bundle.slug, bundle.enabled) == (id_, "acme", True)
    assert TIME.fullmatch(bundle.created_at)
    assert bundle.created_at == bundle.modified_at
    assert bundle.created_at.startswith("2027")
    assert bundles.bundle(id_) == bundle


@pytest.mark.spec("S1-54")
def test_a_bundle_without_what_it_needs_is_refused(bundles, bundle_document, shop):
    for missing in ("slug", "displayName", "isEnabled"):
        document = {name: value for name, value in bundle_document().items() if name != missing}
        assert missing in refused(Kind.VALIDATION, bundles.put_bundle, new_id(), document).message
    assert shop.store.keys() == []


@pytest.mark.spec("S1-15")
def test_an_id_that_is_no_uuid_of_version_7_is_refused_at_every_door(bundles, bundle_document, tool_document):
    doors = (
        lambda id_: bundles.put_bundle(id_, bundle_document()),
        bundles.bundle,
        lambda id_: bundles.switch_bundle(id_, True),
        bundles.delete_bundle,
        lambda id_: bundles.put_tool(id_, "a", "v1", tool_document()),
        lambda id_: bundles.switch_tool(id_, "a", "v1", True),
        lambda id_: bundles.delete_tool(id_, "a", "v1"),
        lambda id_: bundles.tool(id_, "a", "v1"),
        lambda id_: bundles.list_bundles(ids=[id_]),
        lambda id_: bundles.list_tools(bundle_ids=[id_]),
    )
    version_4, undashed = "018faf50-b7b6-4a01-9a05-a22a6e0af101", "018faf50b7b67a019a05a22a6e0af101"
    for id_ in ("", "b1", version_4, "../x", undashed, "\0", None, 7):
        for door in doors:
            assert "UUID" in refused(Kind.VALIDATION, door, id_).message


def test_an_id_means_the_same_bundle_in_capitals(bundles, put_bundle, tool_document):
    id_ = put_bundle(bundles)
    bundles.put_tool(id_.upper(), "weather", "v1", tool_document())
    assert bundles.tool(id_, "weather", "v1").bundle.id == id_
    assert bundles.entry(id_.upper(), "weather", "v1") is not None


@pytest.mark.spec("S1-55", "S1-50", "S1-51")
def test_a_bundle_that_is_replaced_keeps_its_time_and_its_tools_even_under_another_slug(
    bundles, put_bundle, bundle_document, tool_document, shop
):
    id_ = put_bundle(bundles, "before")
    bundles.put_tool(id_, "weather", "v1", tool_document())
    before = bundles.bundle(id_)
    shop.clock.pass_by(60)
    after, is_new = bundles.put_bundle(id_, bundle_document("after", description="new"))
    assert not is_new
    assert (after.slug, after.description) == ("after", "new")
    assert after.created_at == before.created_at
    assert after.modified_at > before.modified_at
    kept = bundles.tool(id_, "weather", "v1")
    assert kept.bundle == after
    assert kept.tool.address == "after/weather@v1"
    assert bundles.find("weather", "after", None).tool is kept.tool
    assert bundles.find("weather", "before", None) is None
    assert [kept.slug for kept in bundles.list_tools().items] == ["weather"]


@pytest.mark.spec("S1-56", "S1-51")
def test_switching_a_bundle_changes_nothing_but_the_switch(bundles, put_bundle, shop):
    id_ = put_bundle(bundles)
    before = bundles.bundle(id_)
    shop.clock.pass_by(60)
    off = bundles.switch_bundle(id_, False)
    assert (off.enabled, off.modified_at, off.created_at) == (False, before.modified_at, before.created_at)
    assert off.toggled_at > before.modified_at
    again = shop.read(id_)
    assert bundles.switch_bundle(id_, False) == off
    assert shop.read(id_) == again
    refused(Kind.NOT_FOUND, bundles.switch_bundle, new_id(), True)


@pytest.mark.spec("S1-59", "S1-16", "S1-25")
def test_a_tool_is_created_with_an_id_and_times_of_the_store(bundles, put_bundle, tool_document, shop):
    id_ = put_bundle(bundles)
    document = tool_document(createdAt="1999-01-01T00:00:00Z", modifiedAt="1999-01-01T00:00:00Z", tags=["sky"])
    kept = bundles.put_tool(id_, "weather", "v2", document)
    assert is_uuid7(kept.id)
    assert kept.created_at == kept.modified_at
    assert kept.created_at.startswith("2027")
    assert (kept.enabled, kept.reason, kept.toggled_at) == (True, "", "")
    assert kept.tool.tags == ("sky",)
    stored = json.loads(shop.read(id_, "weather@v2.json"))
    assert stored["toolID"] == kept.id
    assert stored["createdAt"] == kept.created_at
    assert bundles.tool(id_, "weather", "v2") == kept
    assert "digest" not in kept.document
    assert not any("digest" in warning for warning in kept.warnings)


@pytest.mark.spec("S1-16")
def test_an_id_that_a_client_gives_is_kept_and_a_wrong_one_refused(bundles, put_bundle, tool_document):
    id_, mine = put_bundle(bundles), new_id()
    assert bundles.put_tool(id_, "weather", "v1", tool_document(toolID=mine)).id == mine
    refused(Kind.VALIDATION, bundles.put_tool, id_, "weather", "v2", tool_document(toolID="b1"))


@pytest.mark.spec("S1-48", "S1-67")
def test_a_pair_that_exists_is_refused_and_what_is_there_stays_byte_for_byte(bundles, put_bundle, tool_document, shop):
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "weather", "v1", tool_document())
    before = shop.read(id_, "weather@v1.json")
    shop.clock.pass_by(1)
    error = refused(Kind.CONFLICT, bundles.put_tool, id_, "weather", "v1", tool_document(displayName="Another"))
    assert "weather@v1" in error.message
    assert shop.read(id_, "weather@v1.json") == before


@pytest.mark.spec("S1-05", "S1-47", "S1-49")
def test_versions_stand_beside_each_other_and_pairs_repeat_in_other_bundles(bundles, put_bundle, tool_document):
    one, other = put_bundle(bundles, "one"), put_bundle(bundles, "other")
    for id_, version in ((one, "v9"), (one, "v10"), (other, "v9")):
        bundles.put_tool(id_, "weather", version, tool_document(displayName=f"{id_} {version}"))
    for id_, version in ((one, "v9"), (one, "v10"), (other, "v9")):
        assert bundles.tool(id_, "weather", version).tool.display_name == f"{id_} {version}"
        assert bundles.entry(id_, "weather", version).tool.display_name == f"{id_} {version}"


@pytest.mark.spec("S1-45")
def test_slugs_that_differ_only_in_case_are_two_tools_with_two_file_names(bundles, put_bundle, tool_document, shop):
    id_ = put_bundle(bundles)
    for slug in ("Weather", "weather", "größe", "Größe", "天気", "-a"):
        bundles.put_tool(id_, slug, "V1", tool_document(displayName=slug))
    for slug in ("Weather", "weather", "größe", "Größe", "天気", "-a"):
        assert bundles.tool(id_, slug, "V1").tool.display_name == slug
        assert bundles.find(slug, None, None).tool.display_name == slug
    keys = shop.store.keys(f"bundles/{id_}/")
    assert len({key.lower() for key in keys}) == 7
    assert keys == [key.lower() for key in keys]


def test_the_longest_names_fit(bundles, put_bundle, tool_document):
    id_ = put_bundle(bundles)
    for letter in ("a", "Ä", "𐍈"):
        bundles.put_tool(id_, letter * 64, letter * 64, tool_document())
        assert bundles.tool(id_, letter * 64, letter * 64).slug == letter * 64
        assert bundles.find(letter * 64, None, letter * 64).tool.version == letter * 64
    bundles.put_tool(id_, "-" * 64, "-." * 32, tool_document())
    assert bundles.tool(id_, "-" * 64, "-." * 32).version == "-." * 32


HOSTILE = ["", "a_b", "a b", "a/b", "..", "../x", "a\\b", "a\0", "a\n", "😀", "a" * 65, "a.b", "@", "a@b"]


def test_a_slug_that_cannot_be_one_is_refused_and_nothing_is_stored(bundles, put_bundle, tool_document, shop):
    id_ = put_bundle(bundles)
    for slug in HOSTILE:
        refused(Kind.VALIDATION, bundles.put_tool, id_, slug, "v1", tool_document())
        if slug != "a_b":
            refused(Kind.VALIDATION, bundles.tool, id_, slug, "v1")
            refused(Kind.VALIDATION, bundles.switch_tool, id_, slug, "v1", True)
            refused(Kind.VALIDATION, bundles.delete_tool, id_, slug, "v1")
        assert bundles.entry(id_, slug, "v1") is None
    assert shop.store.keys(f"bundles/{id_}/") == [f"bundles/{id_}/bundle.json"]


def test_a_version_that_cannot_be_one_is_refused(bundles, put_bundle, tool_document):
    id_ = put_bundle(bundles)
    for version in ("", "a_b", "v 1", "a/b", "a\0", "a" * 65, "a@b"):
        refused(Kind.VALIDATION, bundles.put_tool, id_, "weather", version, tool_document())
        refused(Kind.VALIDATION, bundles.tool, id_, "weather", version)
        assert bundles.entry(id_, "weather", version) is None


def test_a_tool_is_found_by_either_spelling_of_its_name(bundles, put_bundle, tool_document):
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "kb-search", "v1", tool_document())
    assert bundles.tool(id_, "kb_search", "v1").slug == "kb-search"
    assert bundles.find("kb_search", None, None).tool.slug == "kb-search"
    assert bundles.entry(id_, "kb_search", "v1").tool.slug == "kb-search"


@pytest.mark.spec("S1-59")
def test_a_tool_needs_a_bundle_that_is_there(bundles, tool_document, shop):
    refused(Kind.NOT_FOUND, bundles.put_tool, new_id(), "weather", "v1", tool_document())
    refused(Kind.NOT_FOUND, bundles.tool, new_id(), "weather", "v1")
    refused(Kind.NOT_FOUND, bundles.delete_tool, new_id(), "weather", "v1")
    refused(Kind.NOT_FOUND, bundles.switch_tool, new_id(), "weather", "v1", True)
    assert shop.store.keys() == []


def test_an_invalid_document_is_refused_and_nothing_is_stored(bundles, put_bundle, tool_document, shop):
    id_ = put_bundle(bundles)
    error = refused(Kind.VALIDATION, bundles.put_tool, id_, "weather", "v1", {"type": "ftp"})
    assert len(error.details["problems"]) > 1
    assert shop.store.keys(f"bundles/{id_}/") == [f"bundles/{id_}/bundle.json"]


@pytest.mark.spec("S1-60", "S1-51")
def test_switching_a_tool_moves_its_own_time_and_nothing_else(bundles, put_bundle, tool_document, shop):
    id_ = put_bundle(bundles)
    before = bundles.put_tool(id_, "weather", "v1", tool_document(note="kept as it is"))
    shop.clock.pass_by(60)
    off = bundles.switch_tool(id_, "weather", "v1", False)
    assert (off.enabled, off.reason) == (False, "its isEnabled is false")
    assert (off.created_at, off.modified_at, off.id) == (before.created_at, before.modified_at, before.id)
    assert off.toggled_at > before.created_at
    assert off.document["note"] == "kept as it is"
    shop.clock.pass_by(60)
    on = bundles.switch_tool(id_, "weather", "v1", True)
    assert (on.usable, on.modified_at) == (True, before.modified_at)
    # Plans are made for this very object.
    assert on.tool is before.tool
    stored = shop.read(id_, "weather@v1.json")
    assert bundles.switch_tool(id_, "weather", "v1", True) == on
    assert shop.read(id_, "weather@v1.json") == stored
    refused(Kind.NOT_FOUND, bundles.switch_tool, id_, "weather", "v2", True)


@pytest.mark.spec("S1-75", "S1-03", "S1-12")
def test_nothing_is_written_into_a_bundle_that_is_switched_off(bundles, put_bundle, tool_document, shop):
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "weather", "v1", tool_document())
    bundles.switch_bundle(id_, False)
    before = shop.read(id_, "weather@v1.json")
    assert "disabled" in refused(Kind.DISABLED, bundles.put_tool, id_, "b", "v1", tool_document()).message
    refused(Kind.DISABLED, bundles.switch_tool, id_, "weather", "v1", False)
    assert shop.read(id_, "weather@v1.json") == before
    assert bundles.list_tools().items == ()
    entry = bundles.entry(id_, "weather", "v1")
    assert (entry.enabled, entry.reason) == (False, "its bundle acme is disabled")
    bundles.switch_bundle(id_, True)
    assert bundles.entry(id_, "weather", "v1").enabled
    assert [kept.slug for kept in bundles.list_tools().items] == ["weather"]


@pytest.mark.spec("S1-61", "S1-62")
def test_a_tool_that_is_deleted_is_gone_and_its_pair_free(bundles, put_bundle, tool_document, shop):
    id_ = put_bundle(bundles)
    first = bundles.put_tool(id_, "weather", "v1", tool_document())
    bundles.delete_tool(id_, "weather", "v1")
    assert shop.read(id_, "weather@v1.json") is None
    refused(Kind.NOT_FOUND, bundles.tool, id_, "weather", "v1")
    refused(Kind.NOT_FOUND, bundles.delete_tool, id_, "weather", "v1")
    assert bundles.entry(id_, "weather", "v1") is None
    assert bundles.find("weather", None, None) is None
    assert bundles.list_tools().items == ()
    assert bundles.search("weather").items == ()
    again = bundles.put_tool(id_, "weather", "v1", tool_document())
    assert again.id != first.id


@pytest.mark.spec("S1-57", "S1-73")
def test_only_an_empty_bundle_is_deleted_and_then_it_cannot_be_used(bundles, put_bundle, tool_document, shop):
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "weather", "v1", tool_document())
    assert "not empty" in refused(Kind.CONFLICT, bundles.delete_bundle, id_).message
    bundles.delete_tool(id_, "weather", "v1")
    deleted = bundles.delete_bundle(id_)
    assert TIME.fullmatch(deleted.soft_deleted_at)
    for door in (
        lambda: bundles.delete_bundle(id_),
        lambda: bundles.switch_bundle(id_, False),
        lambda: bundles.put_tool(id_, "weather", "v1", tool_document()),
        lambda: bundles.switch_tool(id_, "weather", "v1", True),
    ):
        assert "being deleted" in refused(Kind.CONFLICT, door).message
    assert bundles.list_bundles(include_disabled=True).items == ()
    refused(Kind.NOT_FOUND, bundles.delete_bundle, new_id())


def test_a_deleted_bundle_that_is_written_again_lives_again(bundles, put_bundle, bundle_document, tool_document, shop):
    id_ = put_bundle(bundles)
    before = bundles.delete_bundle(id_)
    shop.clock.pass_by(60)
    after, is_new = bundles.put_bundle(id_, bundle_document("back"))
    assert not is_new
    assert (after.soft_deleted_at, after.created_at) == ("", before.created_at)
    bundles.put_tool(id_, "weather", "v1", tool_document())
    assert bundles.find("weather", "back", None).enabled


def test_what_a_later_version_wrote_is_read_and_not_changed(bundles, put_bundle, bundle_document, tool_document, shop):
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "weather", "v1", tool_document(schemaVersion="toolcrib-7"))
    before = shop.read(id_, "weather@v1.json")
    assert "later version" in refused(Kind.BLOCKED, bundles.switch_tool, id_, "weather", "v1", False).message
    assert shop.read(id_, "weather@v1.json") == before
    assert bundles.tool(id_, "weather", "v1").usable
    document = json.loads(shop.read(id_)) | {"schemaVersion": "toolcrib-7"}
    shop.store.replace(f"bundles/{id_}/bundle.json", json.dumps(document).encode())
    refused(Kind.BLOCKED, bundles.put_bundle, id_, bundle_document())
    refused(Kind.BLOCKED, bundles.switch_bundle, id_, False)


def test_a_clock_that_goes_backwards_changes_nothing_before_it_was_made(bundles, put_bundle, bundle_document, shop):
    id_ = put_bundle(bundles)
    shop.clock.now -= 86_400
    after, _ = bundles.put_bundle(id_, bundle_document("later"))
    assert after.modified_at == after.created_at


@pytest.mark.spec("S1-91")
def test_no_more_tools_are_kept_than_the_limit_says(shop, put_bundle, tool_document):
    bundles = shop.open(max_tools=2)
    one, other = put_bundle(bundles, "one"), put_bundle(bundles, "other")
    bundles.put_tool(one, "a", "v1", tool_document())
    bundles.put_tool(other, "b", "v1", tool_document())
    error = refused(Kind.LIMIT_EXCEEDED, bundles.put_tool, one, "c", "v1", tool_document())
    assert error.details == {"limit": 2}
    assert "max_tools" in error.message
    bundles.delete_tool(other, "b", "v1")
    bundles.put_tool(one, "c", "v1", tool_document())


def test_a_change_is_made_only_to_what_the_client_has_read(bundles, put_bundle, bundle_document, tool_document, shop):
    id_ = put_bundle(bundles)
    old = etag_of(bundles.bundle(id_))
    shop.clock.pass_by(1)
    bundle, _ = bundles.put_bundle(id_, bundle_document("new"), if_match=old)
    now = etag_of(bundle)
    assert now != old
    assert now.startswith('"')
    for door in (
        lambda: bundles.put_bundle(id_, bundle_document("newer"), if_match=old),
        lambda: bundles.switch_bundle(id_, False, if_match=old),
        lambda: bundles.delete_bundle(id_, if_match=old),
    ):
        assert refused(Kind.CONFLICT, door).details == {"etag": now}
    assert refused(Kind.CONFLICT, bundles.put_bundle, new_id(), bundle_document(), if_match=old).details == {"etag": ""}
    kept = bundles.put_tool(id_, "weather", "v1", tool_document())
    first = etag_of(kept)
    off = bundles.switch_tool(id_, "weather", "v1", False, if_match=first)
    for door in (
        lambda: bundles.switch_tool(id_, "weather", "v1", True, if_match=first),
        lambda: bundles.delete_tool(id_, "weather", "v1", if_match=first),
        lambda: bundles.put_tool(id_, "weather", "v1", tool_document(), if_match=first),
    ):
        assert refused(Kind.CONFLICT, door).details == {"etag": etag_of(off)}
    bundles.delete_tool(id_, "weather", "v1", if_match=etag_of(off))


def test_a_host_that_calls_may_not_reach_is_remarked_on(shop, put_bundle, tool_document):
    bundles = shop.open(hosts=lambda: ("*.example.com",))
    id_ = put_bundle(bundles)
    assert bundles.put_tool(id_, "weather", "v1", tool_document()).warnings == ()
    document = tool_document(impl={"urlTemplate": "https://elsewhere.example.org:8443/?q=${city}"})
    kept = bundles.put_tool(id_, "weather", "v2", document)
    assert [warning for warning in kept.warnings if "elsewhere.example.org:8443 is not among" in warning]
    assert bundles.tool(id_, "weather", "v2").warnings == kept.warnings


def test_a_copied_document_does_not_bring_the_id_of_the_tool_it_was_copied_from(bundles, put_bundle, tool_document):
    id_ = put_bundle(bundles)
    kept = bundles.put_tool(id_, "rain", "v1", tool_document())
    copy = {**tool_document(), "toolID": kept.id}
    problem = refused(Kind.CONFLICT, bundles.put_tool, id_, "rain", "v2", copy)
    assert problem.message == f"toolID {kept.id} is that of rain@v1; leave it out, and a new one is made"
    assert bundles.put_tool(id_, "rain", "v2", tool_document()).id != kept.id


@pytest.mark.spec("S1-68", "S1-85")
def test_no_bundle_takes_the_name_or_the_id_of_tools_that_are_not_kept_here(shop, bundle_document, make_tool):
    bundles = shop.open(entries=lambda: [Entry(tool=make_tool("sum", "tools"))])
    for slug in ("builtin", "host", "system", "tools"):
        problem = refused(Kind.CONFLICT, bundles.put_bundle, new_id(), bundle_document(slug))
        assert "choose another" in problem.message
    for name in ("builtin", "system", ""):
        refused(Kind.BLOCKED, bundles.put_bundle, stable_id("bundle", name), bundle_document("mine"))
    assert [bundle.slug for bundle in bundles.list_bundles(include_disabled=True).items] == ["tools"]
