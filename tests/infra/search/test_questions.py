"""Questions in plain words."""

import pytest

from toolcrib.infra.search import queries
from toolcrib.infra.search.index import Index
from toolcrib.infra.search.relevance import read_question


@pytest.fixture(params=[True, False], ids=["full text", "scan"])
def index(request, a_row):
    index = Index(None, full_text=request.param)
    index.put(
        [
            a_row("remove-file", description="Unlinks it for good.", parameters=(("path", "where the file lies"),)),
            a_row("translate-text", description="Put a text into another language."),
            a_row("send-mail", description="Deliver a message to a person.", parameters=(("recipient", "an address"),)),
            a_row("current-weather", description="Temperature and wind of a town.", tags=("climate",)),
            a_row("resize-image", description="Make a picture larger or smaller.", parameters=(("widthInPixels", ""),)),
        ]
    )
    yield index
    index.close()


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How can I delete a file?", "remove-file"),
        ("I need a translation of this", "translate-text"),
        ("translator", "translate-text"),
        ("please mail it to someone", "send-mail"),
        ("who is the recipient", "send-mail"),
        ("what is the temperature outside", "current-weather"),
        ("is the climate changing", "current-weather"),
        ("photos", "resize-image"),
        ("width in pixels", "resize-image"),
        ("get rid of the file", "remove-file"),
    ],
)
def test_a_question_finds_its_tool_in_other_words(index, question, answer):
    assert index.ask(question, limit=5)[0].id == f"id-{answer}"


def test_a_slip_in_a_question_is_forgiven(a_row):
    index = Index(None)
    index.put([a_row("weather", description="Temperature"), a_row("mail")])
    assert [hit.id for hit in index.ask("what is the tempreature", limit=5)] == ["id-weather"]
    index.close()


def test_hits_of_a_question_are_scored_and_sorted(index):
    hits = index.ask("send the text of the file", limit=5)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert {str(hit.tier) for hit in hits} == {"relevance"}
    assert index.ask("send the text of the file", limit=2) == hits[:2]


def test_a_question_of_nothing_but_small_words_takes_them_as_they_are(a_row):
    index = Index(None)
    index.put([a_row("to-do"), a_row("mail")])
    assert [hit.id for hit in index.ask("what to do", limit=5)] == ["id-to-do"]
    index.close()


def test_a_question_is_bounded():
    assert len(read_question(" ".join(f"word{number}" for number in range(5_000)))) == 12


def test_the_processs_own_tools_answer_beside_the_others(a_row):
    index = Index(None)
    index.put([a_row(f"mail-{number}", description="something about letters") for number in range(50)])
    index.put([a_row("letters", description="letters and stamps")])
    index.set_own([a_row("mine", key="", description="stamps of letters"), a_row("more", key="", description="other")])
    assert {hit.id for hit in index.ask("stamps", limit=9)} == {"id-letters", "id-mine"}
    assert {hit.id for hit in index.ask("stamps on letters", limit=9)[:2]} == {"id-letters", "id-mine"}
    index.close()


@pytest.fixture
def many(monkeypatch, a_row):
    """An index in which everything is too common to rank every row."""
    monkeypatch.setattr(queries, "MAX_RANKED", 3)
    monkeypatch.setattr(queries, "MAX_CLOSE_OF_MANY", 5)
    monkeypatch.setattr(queries, "RARE", 1)
    index = Index(None)
    index.put(
        a_row(
            f"{verb}-{thing}-{number}",
            description="A tool of the crib.",
            modified_at=f"2026-03-01T10:00:{number:02}.000Z",
            enabled=number != 9,
        )
        for verb in ("send", "print", "fold")
        for thing in ("letter", "parcel", "postcard")
        for number in range(10)
    )
    yield index
    index.close()


def test_among_many_rows_those_count_that_have_several_words(many, a_row):
    hits = many.ask("send a parcel with the tool", limit=3)
    assert [hit.id for hit in hits] == ["id-send-parcel-8", "id-send-parcel-7", "id-send-parcel-6"]
    assert [hit.id for hit in many.ask("send a parcel", limit=1, include_disabled=True)] == ["id-send-parcel-9"]
    many.put([a_row("zeppelin")])
    assert many.ask("send a parcel by zeppelin", limit=9)[0].id == "id-zeppelin"


def test_among_many_rows_those_that_are_called_so_come_before_newer_ones_that_mention_it(many, a_row):
    many.put(
        a_row(f"other-{number}", description="Parcel to send.", modified_at="2026-03-02T10:00:00.000Z")
        for number in range(9)
    )
    assert {hit.id for hit in many.ask("send a parcel", limit=9)} == {
        f"id-send-parcel-{number}" for number in range(4, 9)
    }


def test_among_many_rows_one_common_word_gives_the_newest(many):
    assert [hit.id.rpartition("-")[2] for hit in many.ask("parcel", limit=3)] == ["8", "8", "8"]


def test_nothing_is_asked_of_an_empty_index():
    for index in (Index(None), Index(None, full_text=False)):
        assert index.ask("anything at all", limit=5) == []
        assert index.search("anything", limit=5) == []
        assert index.page(limit=5) == []
        index.close()


@pytest.mark.usefixtures("benchmarks")
def test_most_questions_over_the_standard_library_find_their_answer():
    import questions

    index = Index(None)
    index.put(questions.catalogue())
    found = questions.judge(lambda text: index.ask(text, limit=10), questions.QUESTIONS)
    assert found["recall@1"] > 0.42
    assert found["recall@5"] > 0.65
    assert found["recall@10"] > 0.72
    index.close()
