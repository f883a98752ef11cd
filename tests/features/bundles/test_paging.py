"""Pages: every item that stays comes exactly once, and no token leads anywhere but on."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.features.bundles.pages import Cursors
from toolcrib.infra.search import queries
from toolcrib.infra.search.tables import read_body
from toolcrib.model.tool import Entry


@pytest.fixture
def stocked(shop, put_bundle, tool_document):
    """Three bundles with five tools each."""
    bundles = shop.open()
    ids = [put_bundle(bundles, slug) for slug in ("one", "two", "three")]
    for id_ in ids:
        for number in range(5):
            bundles.put_tool(id_, f"weather-{number}", "v1", tool_document(tags=["even"] if number % 2 == 0 else []))
    return bundles, ids


def names(found):
    return [(kept.bundle.id, kept.slug) for kept in found]


@pytest.mark.spec("S1-66", "S1-64")
def test_walking_all_pages_gives_every_tool_once(stocked, walk):
    bundles, ids = stocked
    for size in (1, 2, 4, 5, 14, 15, 16, 256):
        found = names(walk(bundles.list_tools, page_size=size))
        assert sorted(found) == sorted((id_, f"weather-{number}") for id_ in ids for number in range(5))


@pytest.mark.spec("S1-66", "S1-65")
def test_walking_all_pages_of_a_search_gives_every_hit_once(stocked, walk):
    bundles, _ = stocked
    for size in (1, 2, 7, 14, 15, 16):
        found = walk(lambda **query: bundles.search("weather", **query), page_size=size)
        assert len({(each.kept.bundle.id, each.kept.slug) for each in found}) == len(found) == 15


@pytest.mark.spec("S1-52", "S1-64")
def test_tools_are_chosen_by_tags_and_bundles(stocked, walk):
    bundles, ids = stocked
    assert len(walk(bundles.list_tools, tags=["even"], page_size=2)) == 9
    assert len(walk(bundles.list_tools, tags=["even"], bundle_ids=[ids[0].upper()], page_size=2)) == 3
    assert walk(bundles.list_tools, tags=["even", "odd"]) == []


def test_stored_tools_of_a_tag_are_read_without_reading_the_others(bundles, put_bundle, tool_document, monkeypatch):
    id_ = put_bundle(bundles)
    for number in range(40):
        bundles.put_tool(id_, f"tool-{number}", "v1", tool_document(tags=["Even", "few"] if number < 3 else ["even"]))
    bundles.list_tools(page_size=1)
    read = []
    monkeypatch.setattr(queries, "read_body", lambda body: read.append(body) or read_body(body))
    for tags, slugs in ((["FEW"], 3), (["few", "EVEN"], 3), (["none"], 0), (["even", "none"], 0)):
        found, is_complete = bundles.list_stored(tags=tags)
        assert (len([*found]), is_complete) == (slugs, True)
    assert len(read) == 6


@pytest.mark.spec("S1-52")
def test_a_word_that_only_a_tag_holds_finds_the_tool_by_what_is_typed_and_by_a_question(
    bundles, put_bundle, tool_document
):
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "one", "v1", tool_document(tags=["meteorology"]))
    bundles.put_tool(id_, "two", "v1", tool_document(tags=["cooking"]))
    bundles.put_tool(id_, "three", "v1", tool_document())
    for look, text in ((bundles.search, "meteorology"), (bundles.ask, "Which tools are about meteorology?")):
        assert [found.kept.slug for found in look(text).items] == ["one"]


@pytest.mark.spec("S1-58", "S1-66")
def test_walking_all_bundles_gives_each_once(stocked, walk):
    bundles, ids = stocked
    bundles.switch_bundle(ids[1], False)
    assert [bundle.id for bundle in walk(bundles.list_bundles, page_size=1)] == sorted({ids[0], ids[2]})
    assert len(walk(bundles.list_bundles, include_disabled=True, page_size=2)) == 3
    assert [bundle.id for bundle in walk(bundles.list_bundles, ids=[ids[2], ids[1]])] == [ids[2]]


@pytest.mark.spec("S1-66")
def test_what_stays_is_neither_lost_nor_repeated_when_others_come_and_go(stocked, tool_document):
    bundles, ids = stocked
    first = bundles.list_tools(page_size=4)
    gone = first.items[-1]
    stays = set(names(bundles.list_tools(page_size=256).items)) - {(gone.bundle.id, gone.slug)}
    # The item that the token stands behind vanishes, one before it too, and new ones come before and after.
    bundles.delete_tool(gone.bundle.id, gone.slug, gone.version)
    bundles.put_tool(ids[0], "a-new", "v1", tool_document())
    bundles.put_tool(ids[2], "z-new", "v1", tool_document())
    found, token = names(first.items), first.next_token
    while token:
        page = bundles.list_tools(page_size=4, page_token=token)
        found, token = found + names(page.items), page.next_token
    assert stays <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.spec("S1-66")
def test_a_bundle_that_vanishes_takes_no_other_with_it(bundles, put_bundle):
    ids = sorted(put_bundle(bundles, f"b{number}") for number in range(5))
    first = bundles.list_bundles(page_size=2)
    bundles.delete_bundle(ids[1])
    rest = bundles.list_bundles(page_size=10, page_token=first.next_token)
    assert [bundle.id for bundle in first.items + rest.items] == ids


@pytest.mark.spec("S1-66", "S1-72")
def test_no_page_ends_early_where_most_cannot_be_used(shop, put_bundle, tool_document, walk):
    bundles = shop.open(functions={"here": lambda context, arguments: 1})
    id_ = put_bundle(bundles)
    for number in range(30):
        key = "here" if number % 10 == 9 else "elsewhere"
        bundles.put_tool(id_, f"weather-{number:02}", "v1", tool_document(key))
    first = bundles.list_tools(page_size=2)
    assert [kept.slug for kept in first.items] == ["weather-09", "weather-19"]
    assert [kept.slug for kept in walk(bundles.list_tools, page_size=2)] == ["weather-09", "weather-19", "weather-29"]
    found = walk(lambda **query: bundles.search("weather", **query), page_size=2)
    assert len(found) == 3
    assert len(walk(bundles.list_tools, page_size=7, include_disabled=True)) == 30


@pytest.mark.spec("S1-72")
def test_what_is_switched_off_is_shown_only_on_request(stocked, walk):
    bundles, ids = stocked
    bundles.switch_tool(ids[0], "weather-0", "v1", False)
    bundles.switch_bundle(ids[1], False)
    assert len(walk(bundles.list_tools, page_size=3)) == 9
    shown = walk(bundles.list_tools, page_size=3, include_disabled=True)
    assert len(shown) == 15
    assert sum(not kept.usable for kept in shown) == 6
    assert len(walk(lambda **query: bundles.search("weather", **query), page_size=3)) == 9
    assert len(walk(lambda **query: bundles.search("weather", **query), include_disabled=True, page_size=3)) == 15


@pytest.mark.spec("S1-58")
def test_a_size_out_of_range_is_refused_and_a_recommendation_is_not(stocked):
    bundles, _ = stocked
    doors = (bundles.list_bundles, lambda **size: bundles.search("a", **size), lambda **size: bundles.ask("a", **size))
    for size in (0, -1, 257, 10**9):
        for door in doors:
            with pytest.raises(ToolError, match="from 1 to 256") as caught:
                door(page_size=size)
            assert caught.value.kind is Kind.VALIDATION
        assert len(bundles.list_tools(page_size=size).items) == (1 if size < 1 else 15)


@pytest.mark.spec("S1-65")
def test_there_must_be_something_to_search_for(bundles):
    for text in ("", " ", "+", "\n", "x" * 1_001):
        for door in (bundles.search, bundles.ask):
            with pytest.raises(ToolError, match="search text") as caught:
                door(text)
            assert caught.value.kind is Kind.VALIDATION


@pytest.mark.spec("S1-04")
def test_a_palette_finds_a_slug_behind_its_plus_sign(bundles, put_bundle, tool_document):
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "readfile", "v1", tool_document())
    assert [found.kept.slug for found in bundles.search("+readfile").items] == ["readfile"]
    assert bundles.search("+nosuchslug").items == ()


@pytest.mark.spec("S1-66", "S1-58")
def test_a_token_is_good_for_its_own_query_alone(stocked):
    bundles, ids = stocked
    token = bundles.list_tools(page_size=2).next_token
    other = bundles.search("weather", page_size=2).next_token
    assert bundles.list_tools(page_size=9, page_token=token).items
    flipped = ("B" if token[0] == "A" else "A") + token[1:]
    foreign = Cursors(lambda: b"x" * 32).write(["tools", [], None, False], "")
    for bad in (token[:-1], token + "A", flipped, token + "=", "x", "é", " ", "0" * 20_000, other, foreign):
        for door in (bundles.list_tools, bundles.list_bundles, lambda **query: bundles.search("rain", **query)):
            with pytest.raises(ToolError, match="page token") as caught:
                door(page_token=bad)
            assert caught.value.kind is Kind.VALIDATION
    for query in ({"tags": ["even"]}, {"bundle_ids": [ids[0]]}, {"include_disabled": True}):
        with pytest.raises(ToolError, match="does not belong to this query"):
            bundles.list_tools(page_token=token, **query)
    with pytest.raises(ToolError, match="does not belong to this query"):
        bundles.search("weathe", page_token=other)


def test_a_token_is_good_in_every_process_with_the_key(stocked, shop):
    bundles, _ = stocked
    token = bundles.list_tools(page_size=14).next_token
    assert len(shop.open().list_tools(page_token=token).items) == 1


def test_the_rest_of_an_answer_stays_what_it_was(sqlite_shop, put_bundle, tool_document):
    bundles = sqlite_shop.open()
    ids = [put_bundle(bundles, slug) for slug in ("one", "two")]
    for id_ in ids:
        for number in range(6):
            bundles.put_tool(id_, f"weather-{number}", "v1", tool_document())
    first = bundles.ask("how is the weather", page_size=4)
    gone = first.items[0].kept
    bundles.put_tool(ids[0], "weather-new", "v1", tool_document())
    bundles.delete_tool(gone.bundle.id, gone.slug, "v1")
    found, token = list(first.items), first.next_token
    while token:
        page = bundles.ask("how is the weather", page_size=4, page_token=token)
        found, token = found + list(page.items), page.next_token
    assert len({(each.kept.bundle.id, each.kept.slug) for each in found}) == len(found) == 12
    assert {each.tier for each in found} == {"relevance"}
    with pytest.raises(ToolError, match="does not belong"):
        bundles.ask("something else", page_token=first.next_token)


def test_a_long_answer_fits_into_a_token(sqlite_shop, put_bundle, tool_document):
    bundles = sqlite_shop.open()
    id_ = put_bundle(bundles)
    for number in range(30):
        bundles.put_tool(id_, f"{number:02}" + "Ä" * 62, "Ü" * 64, tool_document())
    page = bundles.ask("weather", page_size=1)
    assert len(page.next_token) < 16_000
    assert bundles.ask("weather", page_token=page.next_token).items


def test_pages_hold_tools_of_every_owner_in_one_order(shop, put_bundle, tool_document, make_tool, walk):
    bundles = shop.open(entries=lambda: [Entry(tool=tool) for tool in others])
    others = [make_tool(f"tool-{number}", "tools") for number in range(7)]
    id_ = put_bundle(bundles)
    for number in range(4):
        bundles.put_tool(id_, f"weather-{number}", "v1", tool_document())
    for size in (1, 3, 11):
        assert len(set(names(walk(bundles.list_tools, page_size=size)))) == 11


@settings(deadline=None)
@given(query=st.lists(st.text(max_size=5), max_size=3), position=st.lists(st.text(max_size=20), max_size=5))
def test_a_position_comes_back_as_it_was(query, position):
    cursors = Cursors(lambda: b"k" * 32)
    token = cursors.write(query, position)
    assert token.isascii()
    assert "=" not in token
    assert cursors.read(query, token) == position


@settings(deadline=None)
@given(st.data())
def test_no_altered_token_is_taken(data):
    cursors = Cursors(lambda: b"k" * 32)
    signed = bytearray(base64.urlsafe_b64decode(cursors.write(["a"], ["b"]) + "=="))
    at = data.draw(st.integers(0, len(signed) - 1))
    signed[at] ^= data.draw(st.integers(1, 255))
    token = base64.urlsafe_b64encode(bytes(signed)).rstrip(b"=").decode()
    with pytest.raises(ToolError, match="page token"):
        cursors.read(["a"], token)


@settings(deadline=None)
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: base64.urlsafe_b64encode(data).decode()))
def test_no_invented_token_is_taken(token):
    with pytest.raises(ToolError, match="page token"):
        Cursors(lambda: b"k" * 32).read(["a"], token)


def test_pages_of_an_answer_lose_nothing_however_long_the_names_are(bundles, put_bundle, tool_document, walk):
    id_ = put_bundle(bundles)
    letters = [chr(0x4E00 + number * 7) for number in range(60)]
    for letter in letters:
        slug = "".join(chr(ord(letter) + 500 + step * 131) for step in range(63)) + letter
        bundles.put_tool(id_, slug, letter * 64, tool_document(description="frobnicate the widget"))
    found = walk(lambda **query: bundles.ask("frobnicate the widget", **query), page_size=1)
    assert {each.kept.version[0] for each in found} == set(letters)
    assert len(found) == len(letters)


def test_an_answer_goes_on_behind_tools_that_came_since(bundles, put_bundle, tool_document):
    id_ = put_bundle(bundles)
    for number in range(3):
        bundles.put_tool(id_, f"tool-{number}", "v1", tool_document(description="frobnicate it, and much else too"))
    first = bundles.ask("frobnicate", page_size=1)
    for number in range(120):
        bundles.put_tool(id_, f"frobnicate-{number}", "v1", tool_document(description="frobnicate"))
    rest = bundles.ask("frobnicate", page_size=25, page_token=first.next_token)
    shown = {each.kept.slug for each in (*first.items, *rest.items)}
    assert shown == {"tool-0", "tool-1", "tool-2"}
