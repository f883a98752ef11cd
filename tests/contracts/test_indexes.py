"""What every index keeps to: in a file, in memory, and without full-text search."""

import threading
from dataclasses import replace

import pytest

from toolcrib.infra.search import Hit, Row, Tier
from toolcrib.infra.search.index import Index


@pytest.fixture(params=["file", "memory", "memory without full-text search"])
def index(request, tmp_path):
    path = tmp_path / "deep" / "index.db" if request.param == "file" else None
    index = Index(path, full_text="without" not in request.param)
    yield index
    index.close()


def at(second: int) -> str:
    return f"2026-03-01T10:00:{second:02}.000Z"


def a_row(slug, *, second=0, bundle="b1", **facts) -> Row:
    return Row(
        **{
            "id": facts.pop("id", f"id-{slug}"),
            "bundle": bundle,
            "slug": slug,
            "version": "1.0.0",
            "name": slug.replace("-", "_"),
            "created_at": at(0),
            "modified_at": at(second),
            "key": f"bundles/{bundle}/{slug}@1.0.0.json",
            "stamp": "s",
        }
        | facts
    )


def found(index, text, **options) -> list[str]:
    return [hit.id.removeprefix("id-") for hit in index.search(text, limit=100, **options)]


def tiers(index, text) -> dict[str, str]:
    return {hit.id.removeprefix("id-"): hit.tier.value for hit in index.search(text, limit=100)}


def walk_search(index, text, limit):
    after = None
    while hits := index.search(text, after=after, limit=limit):
        yield from hits
        after = hits[-1]


@pytest.mark.spec("S1-71", "S1-83")
def test_a_prefix_comes_before_a_whole_word_before_what_is_nearly_it_before_what_is_newer(index):
    index.put(
        [
            a_row("weather-now", second=1),
            a_row("get-weather", second=2),
            a_row("climate", second=3, description="Says what the weather will be."),
            a_row("wether-station", second=4),
            a_row("weathervane", second=5),
            a_row("other", second=6, description="Something else."),
        ]
    )
    hits = index.search("weather", limit=10)
    assert [(hit.id, hit.tier, hit.modified_at) for hit in hits] == [
        ("id-weathervane", Tier.PREFIX, at(5)),
        ("id-weather-now", Tier.PREFIX, at(1)),
        ("id-climate", Tier.WORD, at(3)),
        ("id-get-weather", Tier.WORD, at(2)),
        ("id-wether-station", Tier.FUZZY, at(4)),
    ]


@pytest.mark.spec("S1-71")
def test_what_is_nearly_right_comes_by_its_distance_before_what_is_newer(index):
    index.put(
        [
            a_row("send-invoice-mail", second=1),
            a_row("send-invoice-email", second=2),
            a_row("reminder", second=3, description="Send an invoice again, by mail."),
            a_row("newsletter", second=4, description="Sends mails, not one invoice."),
            a_row("receipt", second=5, description="Send an invoice by email."),
            a_row("other", second=6, description="Send something else by mail."),
        ]
    )
    hits = index.search("send_invioce_mail", limit=10)
    assert [(hit.id, hit.tier, hit.distance) for hit in hits] == [
        ("id-send-invoice-mail", Tier.FUZZY, 1),
        ("id-send-invoice-email", Tier.FUZZY, 2),
        ("id-newsletter", Tier.FUZZY, 4),
        ("id-reminder", Tier.FUZZY, 4),
        ("id-receipt", Tier.FUZZY, 5),
    ]
    assert list(walk_search(index, "send_invioce_mail", 1)) == hits


@pytest.mark.spec("S1-71")
def test_very_many_fuzzy_hits_come_by_their_distance_too(index):
    texts = {3: "Orderings of customers.", 4: "Ordr of customer.", 5: "Ordr of custmer."}
    index.put(a_row(f"x{number}", second=number % 60, description=texts[3 + number % 3]) for number in range(90))
    hits = index.search("order customer", limit=100)
    assert [hit.distance for hit in hits] == [3] * 30 + [4] * 30 + [5] * 30
    newest_first = sorted(hits, key=lambda hit: hit.id)
    newest_first.sort(key=lambda hit: hit.modified_at, reverse=True)
    assert hits == sorted(newest_first, key=lambda hit: hit.distance)
    assert list(walk_search(index, "order customer", 7)) == hits


@pytest.mark.spec("S1-71")
def test_equal_hits_come_newest_first_then_by_id(index):
    index.put(a_row(f"tool-{name}", second=second) for name, second in (("c", 5), ("b", 7), ("a", 5), ("d", 5)))
    assert found(index, "tool") == ["tool-b", "tool-a", "tool-c", "tool-d"]


def test_the_beginning_of_a_word_is_enough(index):
    index.put([a_row("weather"), a_row("get-weather"), a_row("rain", description="About the weather")])
    assert tiers(index, "wea") == {"weather": "prefix", "get-weather": "fuzzy", "rain": "fuzzy"}


def test_the_beginning_of_very_many_words_finds_all_of_them(index):
    letters = "abcdefghijkl"
    index.put(a_row(f"x-{one}{two}", description=f"begin{one}{two} again") for one in letters for two in letters)
    assert len(index.search("begin", limit=500)) == len(letters) ** 2
    assert found(index, "begin nothing") == []


def test_the_beginning_of_very_many_names_finds_all_of_them(index):
    letters = "abcdefghijkl"
    index.put(a_row(f"begin-{one * 5}{two * 5}", description="common") for one in letters for two in letters)
    index.put([a_row("other", description="common, but begins otherwise")])
    assert tiers(index, "beginaaaaa") == {f"begin-aaaaa{two * 5}": "prefix" for two in letters}
    assert len(index.search("common begin", limit=500)) == len(letters) ** 2 + 1
    # The name as one word, and another word before or after it.
    assert tiers(index, "beginaaaaa comm") == {f"begin-aaaaa{two * 5}": "fuzzy" for two in letters}
    assert tiers(index, "common beginaaaaabbbbb") == {"begin-aaaaabbbbb": "word"}


@pytest.mark.parametrize("first", ["name", "word"])
def test_a_text_that_is_a_name_here_and_a_word_there_finds_both(index, first):
    rows = [a_row("weather", second=1), a_row("rain", second=2, description="About the weather")]
    for row in rows if first == "name" else reversed(rows):
        index.put([row])
        index.search("weather", limit=1)
    assert tiers(index, "weather") == {"weather": "prefix", "rain": "word"}
    assert tiers(index, "weath") == {"weather": "prefix", "rain": "fuzzy"}
    assert tiers(index, "waether") == {"weather": "fuzzy", "rain": "fuzzy"}
    index.remove(["id-weather"])
    assert tiers(index, "weath") == tiers(index, "waether") == {"rain": "fuzzy"}


def test_one_letter_is_a_word_too(index):
    index.put([a_row("x-ray"), a_row("plot", description="Draws x over y"), a_row("zoom")])
    assert tiers(index, "x") == {"x-ray": "prefix", "plot": "word"}
    assert tiers(index, "y") == {"plot": "word"}


@pytest.mark.parametrize("slug", ["read-file", "readFile", "readfile", "Read-File"])
@pytest.mark.parametrize("text", ["readfile", "read-file", "readFile", "read_file", "+readfile", "READFILE", "read f"])
def test_a_name_is_found_however_it_is_spelled(index, slug, text):
    index.put([a_row(slug), a_row("write-mail")])
    assert tiers(index, text) == {slug: "prefix"}


def test_every_text_of_a_tool_is_searched(index):
    index.put(
        [
            a_row(
                "a",
                name="alpha_bet",
                display_name="Gamma Ray",
                description="Delta works.",
                tags=("epsilon", "zeta-eta"),
                parameters=(("thetaValue", "an iota of it"),),
            ),
            a_row("b"),
        ]
    )
    words = "alpha bet gamma ray delta works epsilon zeta eta zetaeta theta value thetavalue iota"
    for word in words.split():
        assert found(index, word) == ["a"], word


def test_every_word_that_was_typed_must_fit_and_the_worst_decides(index):
    index.put(
        [
            a_row("send-mail", description="To one person."),
            a_row("send-letter", description="By mail."),
            a_row("send-parcel"),
            a_row("mailbox", description="Where they send it."),
        ]
    )
    assert tiers(index, "send mail") == {"send-mail": "prefix", "send-letter": "word", "mailbox": "fuzzy"}
    assert tiers(index, "mail send") == {"send-mail": "word", "send-letter": "word", "mailbox": "fuzzy"}
    assert tiers(index, "send person") == {"send-mail": "word"}
    assert tiers(index, "send nothing") == {}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("waether", "weather"),
        ("wheather", "weather"),
        ("weathr", "weather"),
        ("eather", "weather"),
        ("mial", "mail"),
        ("calculatoin", "calculation"),
        ("calulaton", "calculation"),
        ("weathen", "weather"),
    ],
)
def test_slips_of_a_typist_are_forgiven(index, typed, meant):
    index.put([a_row("tool", description=f"About {meant} and so on."), a_row("else")])
    assert tiers(index, typed) == {"tool": "fuzzy"}


@pytest.mark.parametrize(
    ("typed", "there"),
    [("us", "sum"), ("waethre", "weather"), ("v1235", "v1234"), ("2026", "2025")],
)
def test_what_is_short_or_far_off_or_a_number_is_not_nearly_something_else(index, typed, there):
    index.put([a_row("tool", description=f"About {there}.")])
    assert found(index, typed) == []


@pytest.mark.parametrize("typed", ["cafe", "CAFÉ", "café", "cafe\u0301"])
def test_case_and_accents_do_not_count(index, typed):
    index.put([a_row("tool", description="Le Café du Nord, Straße"), a_row("other")])
    assert tiers(index, typed) == {"tool": "word"}
    assert tiers(index, "STRASSE") == {"tool": "word"}


def test_scripts_without_spaces_are_searched_sign_by_sign(index):
    index.put([a_row("查询天气", name="查询天气"), a_row("天空", description="看天")])
    assert tiers(index, "天气") == {"查询天气": "word"}
    assert tiers(index, "查询") == {"查询天气": "prefix"}


@pytest.mark.parametrize(
    "text",
    [
        '"',
        'a" OR "b',
        "alpha NOT beta",
        "NEAR(alpha beta)",
        "name : alpha",
        "alpha*",
        "(alpha",
        "^alpha",
        "%",
        "_",
        "alpha%",
        "\0",
        "al\0pha",
        "\ud800",
        "alpha\udfff",
        "'; DROP TABLE rows; --",
        "🙂",
        "🙂🙂",
        " ",
        "",
        "-",
        "+",
        "§alpha",
        "\ue000alpha",
        "x" * 10_000,
        "alpha " * 5_000,
        "a b c d e f g h i j k l m n o p q r s t u v w x y z",
        "{alpha}",
        "alpha AND",
        "OR",
    ],
)
def test_no_text_is_anything_but_words(index, text):
    index.put([a_row("alpha"), a_row("beta", description="alpha")])
    for hits in (index.search(text, limit=5), index.ask(text, limit=5)):
        assert {hit.id for hit in hits} <= {"id-alpha", "id-beta"}
    assert index.count() == 2


@pytest.mark.parametrize("text", ["🙂", "", "  ", "---", "\0", "\ud800"])
def test_what_has_no_word_in_it_finds_nothing(index, text):
    index.put([a_row("alpha")])
    assert index.search(text, limit=5) == []
    assert index.ask(text, limit=5) == []


def test_texts_that_no_file_could_hold_are_kept_as_they_are(index):
    row = a_row("odd", description="half \ud800 a\0 character", tags=("\udfff",), parameters=(("p\0", "\ud83d"),))
    index.put([row])
    assert index.get(row.id) == row
    assert found(index, "character") == ["odd"]
    assert index.get("\ud800") is None
    assert index.named("\ud800") == []
    assert index.page(after="\ud800", tags=["\ud800"], bundles=["\ud800"], limit=3) == []
    assert index.stamps("\ud800") == {}


@pytest.mark.spec("S1-70")
def test_what_was_put_is_found_and_what_was_removed_is_not(index):
    index.put([a_row("alpha", description="first")])
    index.put([a_row("alpha", description="second", second=3)])
    assert (found(index, "first"), found(index, "second")) == ([], ["alpha"])
    index.remove(["id-alpha", "id-never"])
    assert found(index, "second") == []
    assert index.ask("second", limit=3) == []
    assert index.get("id-alpha") is None
    assert index.page(limit=5, tags=()) == []


def test_a_row_comes_back_as_it_was_put(index):
    row = a_row(
        "alpha",
        display_name="Alpha",
        description="text",
        tags=("t", "u"),
        parameters=(("p", "what"), ("q", "")),
        enabled=False,
        problem="broken",
        stamp="12-34",
    )
    index.put([row])
    assert index.get(row.id) == row
    assert index.named("alpha") == [row]
    assert index.page(limit=1, include_disabled=True) == [row]
    changed = replace(row, enabled=True, stamp="56", problem="", modified_at=at(0).replace("Z", "+00:00"))
    index.put([changed])
    assert index.get(row.id) == changed
    assert index.stamps("b1") == {row.key: (row.id, "56")}


@pytest.mark.spec("S1-72")
def test_what_is_switched_off_is_absent_unless_asked_for(index):
    index.put(
        [
            a_row("mail-on"),
            a_row("mail-off", enabled=False),
            a_row("mail-there", bundle="b2"),
            a_row("mail-there-off", bundle="b2", enabled=False),
        ]
    )
    index.put_bundle("b1", enabled=True)
    index.put_bundle("b2", enabled=False)

    def seen(**options):
        return [
            sorted(found(index, "mail", **options)),
            sorted(hit.id.removeprefix("id-") for hit in index.ask("mail", limit=9, **options)),
            sorted(row.slug for row in index.page(limit=9, **options)),
        ]

    assert seen() == [["mail-on"]] * 3
    assert seen(include_disabled=True) == [["mail-off", "mail-on", "mail-there", "mail-there-off"]] * 3
    index.put_bundle("b2", enabled=True)
    assert seen() == [["mail-on", "mail-there"]] * 3
    index.put([a_row("mail-off", enabled=True)])
    assert seen() == [["mail-off", "mail-on", "mail-there"]] * 3


def test_a_bundle_goes_with_its_rows_and_its_switch(index):
    index.put([a_row("a"), a_row("b", bundle="b2"), a_row("c", bundle="b2")])
    index.set_own([a_row("own", bundle="b2", key="")])
    index.put_bundle("b2", enabled=False)
    index.remove_bundle("b2")
    assert [row.slug for row in index.page(limit=9, include_disabled=True)] == ["a"]
    index.put([a_row("b", bundle="b2")])
    assert [row.slug for row in index.page(limit=9)] == ["a", "b"]


def test_a_page_has_all_of_the_tags_and_any_of_the_bundles(index):
    index.put(
        [
            a_row("a", tags=("red", "big")),
            a_row("b", tags=("red",), bundle="b2"),
            a_row("c", tags=("big", "red", "red"), bundle="b3"),
            a_row("d"),
        ]
    )

    def slugs(**options):
        return "".join(row.slug for row in index.page(limit=9, **options))

    assert slugs() == "abcd"
    assert slugs(tags=["red"]) == "abc"
    assert slugs(tags=["big", "red"]) == "ac"
    assert slugs(tags=["Red"]) == ""
    assert slugs(bundles=["b2", "b3", "b9"]) == "bc"
    assert slugs(bundles=[]) == ""
    assert slugs(bundles=["b1", "b3"], tags=["red"]) == "ac"
    assert slugs(after="id-b", tags=["red"]) == "c"
    assert slugs(after="id-aa", bundles=["b1", "b2"]) == "bd"
    assert [row.slug for row in index.page(limit=2, bundles=["b1", "b2", "b3"])] == ["a", "b"]


def test_a_tag_in_any_case_finds_every_spelling_and_each_row_once(index):
    index.put(
        [
            a_row("a", tags=("Red", "red", "big")),
            a_row("b", tags=("red",)),
            a_row("c", tags=("RED", "Big")),
            a_row("d", tags=("redder",)),
        ]
    )

    def slugs(*tags, **options):
        return "".join(row.slug for row in index.page(tags=tags, any_case=True, **{"limit": 9} | options))

    assert (slugs("red"), slugs("rEd", limit=2), slugs("reD", after="id-a")) == ("abc", "ab", "bc")
    assert (slugs("BIG", "red"), slugs("big", "BIG"), slugs("big", "blue")) == ("ac", "ac", "")
    index.remove(["id-c"])
    assert (slugs("red"), slugs("big")) == ("ab", "a")


def test_names_are_given_newest_created_first(index):
    index.put(
        [
            a_row("x", id="1", version="1", created_at=at(1)),
            a_row("x", id="2", version="2", created_at=at(3), enabled=False),
            a_row("x", id="3", version="1", created_at=at(2), bundle="b2"),
            a_row("y", id="4"),
        ]
    )
    index.set_own([a_row("x", id="0", key="", created_at=at(2))])
    assert [row.id for row in index.named("x")] == ["2", "0", "3", "1"]
    assert index.named("z") == []


def test_stamps_are_those_of_documents(index):
    index.put([a_row("a", stamp="1"), a_row("b", stamp="2"), a_row("c", bundle="b2")])
    index.set_own([a_row("own", key="", stamp="")])
    assert index.stamps("b1") == {
        "bundles/b1/a@1.0.0.json": ("id-a", "1"),
        "bundles/b1/b@1.0.0.json": ("id-b", "2"),
    }
    assert index.count() == 3


def test_the_processs_own_rows_are_found_among_the_others(index):
    index.put([a_row("mail-old", second=1), a_row("mail-new", second=9)])
    index.set_own([a_row("mail-mine", second=5, key=""), a_row("else", key="")])
    assert found(index, "mail") == ["mail-new", "mail-mine", "mail-old"]
    assert {hit.id for hit in index.ask("mail", limit=9)} == {"id-mail-new", "id-mail-mine", "id-mail-old"}
    assert [row.slug for row in index.page(limit=9)] == ["else", "mail-mine", "mail-new", "mail-old"]
    index.set_own([a_row("mail-mine", second=5, key="", description="now other words")])
    assert found(index, "other") == ["mail-mine"]
    assert [row.slug for row in index.page(limit=9)] == ["mail-mine", "mail-new", "mail-old"]
    index.put_bundle("b1", enabled=False)
    assert found(index, "mail") == []
    index.set_own([])
    assert index.get("id-mail-mine") is None
    assert index.count() == 2


def test_a_row_without_a_key_is_the_processs_own(index):
    index.put([a_row("shared"), a_row("mine", key="")])
    assert (index.count(), index.get("id-mine").slug) == (1, "mine")
    index.set_own([])
    assert index.get("id-mine") is None


def test_facts_are_noted_beside_each_other(index):
    assert index.facts() == {}
    index.note({"generation": "1", "other": "x"})
    index.note({"generation": "2"})
    assert index.facts() == {"generation": "2", "other": "x"}


@pytest.mark.spec("S1-66")
def test_pages_of_a_search_give_every_hit_once(index):
    index.put(
        [a_row(f"mail-{number:02}", second=number % 3) for number in range(20)]
        + [a_row(f"get-{number:02}", second=number % 2, description="mail") for number in range(20)]
        + [a_row(f"x-{number:02}", description="mailing") for number in range(20)]
    )
    whole = index.search("mail", limit=100)
    assert len(whole) == 60
    for limit in (1, 7, 20, 60):
        assert list(walk_search(index, "mail", limit)) == whole


@pytest.mark.spec("S1-66")
def test_a_search_goes_on_behind_a_hit_that_is_gone(index):
    index.put(a_row(f"mail-{number}", second=5) for number in range(9))
    first = index.search("mail", limit=4)
    index.remove([hit.id for hit in first])
    index.put([a_row("mail-newer", second=9), a_row("mail-35", second=5), a_row("mail-00", second=5)])
    rest = list(walk_search_from(index, "mail", first[-1]))
    assert [hit.id for hit in rest] == ["id-mail-35", *(f"id-mail-{number}" for number in range(4, 9))]


def walk_search_from(index, text, after):
    while hits := index.search(text, after=after, limit=2):
        yield from hits
        after = hits[-1]


def test_a_search_goes_on_behind_any_hit(index):
    index.put([a_row("mail", second=5), a_row("get-mail", second=4)])
    made_up = Hit(id="zzz", tier=Tier.PREFIX, modified_at="no time at all")
    assert [hit.id for hit in index.search("mail", after=made_up, limit=5)] == ["id-get-mail"]
    assert index.search("mail", after=Hit(id="", tier=Tier.FUZZY, modified_at=at(9)), limit=5) == []


def test_many_rows_of_one_moment_keep_their_order_however_they_come(index):
    names = [f"{(number * 7919) % 997:03}" for number in range(997)]
    for start in range(0, 997, 100):
        index.put(a_row(f"t-{name}", id=name) for name in names[start : start + 100])
    for name in names[:60]:
        index.put([a_row(f"t-{name}x", id=f"{name}x")])
    hits = [hit.id for hit in walk_search(index, "t", 50)]
    assert hits == sorted([*names, *(f"{name}x" for name in names[:60])])


def test_threads_share_an_index(index):
    problems = []

    def work(number):
        try:
            for step in range(15):
                slug = f"mail-{number}-{step}"
                index.put([a_row(slug)])
                assert slug in found(index, slug)
                index.ask("send a mail", limit=3)
                index.page(limit=3)
                if step % 3 == 0:
                    index.remove([f"id-{slug}"])
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert problems == []
    assert index.count() == 40


def test_a_closed_index_can_be_used_again(index):
    index.put([a_row("alpha")])
    index.close()
    index.close()
    index.put([a_row("beta")])
    assert found(index, "beta") == ["beta"]
