"""The example of a request is read by its syntax tree, never run, and has to agree with the rest."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import ToolError
from toolcrib.features.requests.document import read_request

HEAD = """tool_request:
  id: req_20240115_001
  name: star_scraper
  description: d
  priority: medium
  requested_by: fullsend
  inputs:
    - {name: repo, type: string, description: d, required: true}
    - {name: limit, type: integer, description: d, default: 100}
    - {name: tags, type: list, description: d}
  example_usage: """
FIRST_LINE = 12


def with_example(code: str) -> str:
    return HEAD + "|\n" + "".join(f"    {line}\n" if line else "\n" for line in code.split("\n"))


def usage(code: str):
    return read_request(with_example(code), strict=True)


def refusals(code: str) -> list[tuple[int, str]]:
    """The problems of an example: the line of the code, and the words."""
    with pytest.raises(ToolError) as caught:
        read_request(with_example(code))
    found = []
    problems = caught.value.details["problems"]
    assert isinstance(problems, list)
    for problem in problems:
        place, field, text = problem.split(": ", 2)
        assert field == "example_usage"
        found.append((int(place.partition(":")[2]) - FIRST_LINE + 1, text))
    return found


@pytest.mark.spec("S0-26")
class TestWhatItShows:
    @pytest.mark.parametrize(
        "code",
        [
            "from tools.star_scraper import scrape\nscrape(repo='a/b', limit=5)",
            "from tools.star_scraper import scrape as s\nprint(s(repo='a/b', limit=5))",
            "import tools.star_scraper\ntools.star_scraper.scrape(repo='a/b', limit=5)",
            "import tools.star_scraper as t\nt.scrape(repo='a/b', limit=5)",
            "from tools import star_scraper\nstar_scraper.scrape(repo='a/b', limit=5)",
            "from tools import star_scraper as t\nt.scrape(repo='a/b', limit=5)",
            "import json, tools.star_scraper as t\nfrom tools.other_tool import f\nf(t.scrape(repo='a/b', limit=5))",
            "def go():\n    from tools.star_scraper import scrape\n    return [scrape(repo='a/b', limit=5) for _ in range(3)]",
            "import asyncio\nfrom tools.star_scraper import scrape\n\nwith open('x') as f:\n    x = scrape(\n        repo='a/b',\n        limit=5,\n    )",
        ],
    )  # fmt: skip
    def test_function_and_arguments_are_taken_from_it(self, code):
        request = usage(code)
        assert (request.function, dict(request.shown)) == ("scrape", {"repo": "a/b", "limit": 5})
        assert request.example_usage == code + "\n"

    def test_only_literals_of_the_first_call_are_shown(self):
        code = (
            "from tools.star_scraper import scrape\nwanted = 'x'\n"
            "scrape(repo=wanted, limit=-5, tags=['a', {'b': None}])\nscrape(repo='second')"
        )
        assert usage(code).shown == {"limit": -5, "tags": ["a", {"b": None}]}

    @pytest.mark.parametrize(
        "value", ["(1, 2)", "{1, 2}", "b'x'", "f'{x}'", "1j", "2 ** 70", "...", "[" * 20 + "]" * 20]
    )
    def test_what_json_cannot_say_is_not_shown(self, value):
        assert usage(f"from tools.star_scraper import scrape\nscrape(repo='a', tags={value})").shown == {"repo": "a"}

    def test_without_an_example_the_function_is_named_like_the_tool(self, compose):
        request = read_request(compose())
        assert (request.function, dict(request.shown)) == ("word_counter", {})

    def test_an_odd_escape_is_no_fault(self):
        assert usage("from tools.star_scraper import scrape\nscrape(repo='\\d')").shown == {"repo": "\\d"}

    def test_nothing_of_it_runs(self, tmp_path):
        trace = tmp_path / "trace"
        usage(f"from tools.star_scraper import scrape\nopen({str(trace)!r}, 'w').write('x')\nscrape(repo='a')")
        assert not trace.exists()


@pytest.mark.spec("S0-26")
class TestWhatContradictsTheRequest:
    def test_a_fault_of_syntax_is_told_with_its_line(self):
        ((line, text),) = refusals("from tools.star_scraper import scrape\n\nscrape(repo=)\n")
        assert line == 3
        assert text.startswith("is not Python: ")

    @pytest.mark.parametrize(
        "code",
        [
            "from tools.other import scrape\nscrape(repo='a')",
            "import tools.other\ntools.other.scrape(repo='a')",
            "from tools import other\nother.scrape(repo='a')",
            "from tools.star_scraper.deeper import scrape\nscrape(repo='a')",
        ],
    )
    def test_another_module_than_the_tool(self, code):
        ((line, text),) = refusals(code)
        assert line == 1
        assert text.endswith("but the tool is star_scraper; write from tools.star_scraper import star_scraper")

    def test_a_keyword_that_is_no_input(self):
        assert refusals("from tools.star_scraper import scrape\n\nscrape(\n    repo='a',\n    depth=3,\n)") == [
            (5, "'depth' is not among the inputs; add it there, or remove it")
        ]

    def test_a_required_input_that_is_missing(self):
        assert refusals("from tools.star_scraper import scrape\nx = 1\nscrape(limit=3)") == [
            (3, "the required input repo is missing in the call; add it")
        ]

    @pytest.mark.parametrize("arguments", ["'a/b'", "'a/b', limit=3", "*['a/b']"])
    def test_arguments_without_a_keyword(self, arguments):
        assert refusals(f"from tools.star_scraper import scrape\nscrape({arguments})") == [
            (2, "a tool takes keywords alone; write name=value for every argument")
        ]

    def test_an_argument_given_twice(self):
        assert refusals("from tools.star_scraper import scrape\nscrape(repo='a', repo='b')") == [
            (2, "'repo' is given twice; remove one")
        ]

    def test_every_call_counts(self):
        code = "from tools.star_scraper import scrape\nscrape(repo='a')\nscrape(repo='a', x=1)\nscrape()"
        assert [line for line, _ in refusals(code)] == [3, 4]

    @pytest.mark.parametrize(
        "code",
        [
            "from tools.star_scraper import scrape, Limited\nscrape(repo='a')",
            "from tools.star_scraper import scrape, other\nscrape(repo='a')\nother(repo='a')",
            "import tools.star_scraper as t\nt.scrape(repo='a')\nt.other(repo='a')",
        ],
    )
    def test_more_than_one_function(self, code):
        ((line, text),) = refusals(code)
        assert line == 1
        assert text.endswith("but a tool has one function; import and call one of them")

    @pytest.mark.parametrize("name", ["*", "_hidden", "__path__", "fä", "f" * 65])
    def test_a_function_that_cannot_be_imported(self, name):
        ((line, text),) = refusals(f"from tools.star_scraper import {name}")
        assert line == 1
        assert "cannot be the function of a tool; write from tools.star_scraper import star_scraper" in text

    def test_it_is_not_held_against_inputs_that_were_refused(self, compose, problems):
        inputs = [{"name": "text", "type": "date", "description": "d"}]
        code = "from tools.word_counter import count\ncount(text='a')"
        (problem,) = problems(compose(inputs=inputs, example_usage=code))
        assert problem.startswith("inputs[0].type: ")

    def test_the_line_is_that_of_the_field_where_lines_cannot_be_told_apart(self):
        code = json.dumps("from tools.star_scraper import scrape\n\n\nscrape(x=1, repo='a')")
        with pytest.raises(ToolError) as caught:
            read_request(HEAD + code + "\n", place="request.yaml")
        assert caught.value.details["line"] == FIRST_LINE - 1


class TestWhatItsAuthorShouldKnow:
    @pytest.mark.parametrize(
        ("code", "line", "words"),
        [
            ("x = 1", 1, "does not import the tool; write from tools.star_scraper import star_scraper"),
            ("star_scraper(repo='a')", 1, "does not import the tool"),
            ("from tools.star_scraper import scrape\n\nx = scrape", 3, "does not call the tool"),
            ("from tools.star_scraper import scrape\nscrape(**known)", 2, "what ** hands over cannot be checked"),
            ("from tools.star_scraper import scrape\nscrape(repo='a',\n  limit='5')", 3, '"5" is not what the input limit takes'),
        ],
    )  # fmt: skip
    def test_is_told_with_its_line(self, code, line, words):
        (said,) = read_request(with_example(code), place="w").warnings
        assert said.startswith(f"w:{FIRST_LINE + line - 1}: example_usage: {words}")

    def test_a_call_by_the_name_of_the_tool_is_checked_without_an_import(self):
        assert "not among the inputs" in refusals("star_scraper(repo='a', x=1)")[0][1]

    def test_an_argument_of_another_type_is_not_shown(self):
        request = read_request(with_example("from tools.star_scraper import scrape\nscrape(repo='a', limit='5')"))
        assert request.shown == {"repo": "a"}


class TestHostileCode:
    @pytest.mark.parametrize(
        "code",
        [
            "-" * 19_000 + "1",
            "(" * 9_000 + ")" * 9_000,
            "[" * 19_000,
            "a" + ".a" * 9_000,
            "not " * 4_500 + "x",
            "lambda:" * 2_500 + "x",
            "f(" * 6_000 + ")" * 6_000,
            "1" + "+1" * 9_000,
            "x" + "[0]" * 6_000,
            "if x:\n" + "".join(" " * n + "if x:\n" for n in range(1, 190)) + " " * 190 + "x",
            "x = " + "9" * 19_000,
            "f'" + "{" * 9_000 + "'",
            "'" + "\\N{" * 4_000 + "'",
            "'\\d'",
        ],
        ids=[
            "minus",
            "parens",
            "open",
            "dots",
            "not",
            "lambda",
            "calls",
            "plus",
            "items",
            "ifs",
            "digits",
            "fstring",
            "names",
            "escape",
        ],
    )
    def test_is_read_or_refused_within_a_moment(self, compose, outcome, code):
        assert all("example_usage: is n" in problem for problem in outcome(compose(example_usage=code)))

    def test_too_much_code_is_refused(self, compose, problems):
        assert problems(compose(example_usage="#" * 20_001)) == [
            "example_usage: has 20001 characters, the limit is 20000; shorten it"
        ]

    @settings(max_examples=examples(150))
    @given(
        st.lists(
            st.sampled_from(
                [
                    "from tools.a_b import f\n",
                    "f(",
                    "x=1",
                    ")",
                    ",",
                    "\n",
                    "'",
                    "*",
                    "**d",
                    "f",
                    ".",
                    "import tools.a_b",
                    " as ",
                    "\\",
                    "(",
                    "0",
                    "é",
                    "=",
                ]
            ),
            max_size=25,
        )
    )
    def test_for_any_code_there_is_a_request_or_one_refusal(self, outcome, pieces):
        fields = {
            "id": "req_1",
            "name": "a_b",
            "description": "d",
            "priority": "low",
            "requested_by": "fullsend",
            "example_usage": "".join(pieces),
        }
        found = outcome(json.dumps({"tool_request": fields}, ensure_ascii=False))
        assert all("example_usage" in problem for problem in found)
