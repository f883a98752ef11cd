"""A request is read leniently, and everything that is wrong with it is told at once."""

import json

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.document.writer import with_id

DOCUMENT_NAMES = [
    "github_stargazer_scraper",
    "linkedin_profile_enricher",
    "twitter_follower_scraper",
    "email_validator",
    "company_data_enricher",
]


@pytest.mark.spec("S0-02")
class TestTheRoot:
    def test_one_key_holds_the_whole_request(self, compose):
        request = read_request(compose())
        assert (request.id, request.name, request.priority) == ("req_20240115_001", "word_counter", "medium")
        assert request.warnings == ()

    @pytest.mark.parametrize(
        ("text", "line", "column", "words"),
        [
            ("", 1, 1, "is empty; write tool_request:"),
            ("# nothing\n", 1, 1, "is empty"),
            ("- tool_request: 1\n", 1, 1, "must be a mapping, not a list"),
            ("hello", 1, 1, "must be a mapping, not text"),
            ("request:\n  id: x\n", 1, 1, "has no tool_request"),
            ("tool_request:\n", 1, 1, "tool_request must be a mapping, not null"),
            ("tool_request: []\n", 1, 1, "tool_request must be a mapping, not a list"),
            ("a: 1\ntool_request: x\n", 2, 1, "tool_request must be a mapping, not text"),
            ("tool_request:\n  id: [1\n", 3, 1, "correct the YAML there"),
            ("tool_request:\n  id: 'x\n", 2, 7, "the quote that opens here is never closed"),
            ("tool_request:\n  id: a: b\n", 2, 8, "write text with a colon in quotes"),
            ("```yaml\ntool_request:\n  id: x\n```\n", 1, 1, "remove the lines with it"),
            ("tool_request:\n\xa0\xa0id: x\n", 2, 1, "a no-break space cannot indent YAML; write spaces"),
            ("tool_request:\n  id: x\n  priority:low\n  name: y\n", 3, 3, "write key: value"),
            ("tool_request:\n  requirements:\n    - see: that: x\n", 3, 16, "in quotes"),
            ("tool_request:\n\tid: x\n", 2, 1, "a tab cannot indent YAML"),
            ("tool_request:\n  id: \0\n", 2, 7, "holds the character U+0000"),
            ("tool_request:\n  id: \ud800\n", 2, 7, "is not UTF-8"),
            (b"tool_request:\n  id: \xff\n", 2, 7, "is not UTF-8"),
            ("tool_request:\n  id: x\n  id: y\n", 3, 3, "stands twice"),
            ("tool_request:\n  id: !!python/name:os.system\n", 2, 7, "the tag"),
            ("tool_request:\n  <<: {id: x}\n", 2, 3, "merge keys ('<<') are not supported"),
            ("tool_request: {}\n---\ntool_request: {}\n", 2, 1, "begins a second document"),
        ],
    )
    def test_what_is_no_request_is_refused_with_line_and_column(self, text, line, column, words):
        with pytest.raises(ToolError) as caught:
            read_request(text, place="request.yaml")
        error = caught.value
        assert error.kind is Kind.VALIDATION
        assert (error.details["line"], error.details["column"]) == (line, column)
        assert error.details["problems"] == [error.message]
        assert error.message.startswith(f"request.yaml:{line}:")
        assert words in error.message

    def test_a_key_beside_the_root_comes_with_a_warning(self, compose, warnings):
        text = json.dumps({**json.loads(compose()), "meta": 1})
        assert warnings(text) == ["meta: is not read; tool_request is the only key"]


class TestTheId:
    @pytest.mark.spec("S0-03")
    @pytest.mark.parametrize("number", ["req_20240115_001", "req_20240115_002", "req_20240120_001", "req_20240229_999"])
    def test_the_format_is_accepted(self, compose, warnings, number):
        assert warnings(compose(id=number)) == []
        assert read_request(compose(id=number)).id == number

    @pytest.mark.spec("S0-03")
    @pytest.mark.parametrize(
        "number",
        ["REQ_20240115_001", "20240115_001", "req_", "req_a b", "req_a/b", "req_a:b", "req_ä", "req_" + "1" * 61],
    )
    def test_an_id_that_is_not_safe_as_a_key_is_always_refused(self, compose, problems, number):
        (problem,) = problems(compose(id=number))
        assert problem == f"id: {json.dumps(number)} cannot be an id; write req_YYYYMMDD_NNN, such as req_20240115_001"
        assert problems(compose(id=number), numbered=False) == [problem]

    @pytest.mark.spec("S0-03")
    @pytest.mark.parametrize(
        "number", ["req_2024_1", "req_20240115_1", "req_20260201_email_sender", "req_20240115_0001"]
    )
    def test_another_safe_id_is_kept_with_a_warning_that_names_the_format(self, compose, warnings, number):
        assert warnings(compose(id=number)) == [f"id: {number!r} is taken as it is; write req_YYYYMMDD_NNN"]
        assert read_request(compose(id=number)).id == number

    @pytest.mark.spec("S0-05")
    @pytest.mark.parametrize("day", ["20240230", "20230229", "20241301", "00000101"])
    def test_a_day_that_never_was_is_told(self, compose, warnings, day):
        assert warnings(compose(id=f"req_{day}_001")) == [
            f"id: there is no day {day}; write the date of today in req_YYYYMMDD_NNN"
        ]

    @pytest.mark.spec("S0-05")
    @pytest.mark.parametrize("day", ["20240230", "20230229", "20241301", "00000101"])
    def test_a_day_that_never_was_is_refused_in_strict_mode(self, compose, day):
        with pytest.raises(ToolError, match=f"id: there is no day {day}") as refused:
            read_request(compose(id=f"req_{day}_001"), strict=True)
        assert refused.value.kind is Kind.VALIDATION

    @pytest.mark.spec("S0-03")
    @pytest.mark.parametrize("absent", [..., None])
    def test_an_absent_id_is_refused_unless_the_request_is_to_be_numbered(self, compose, problems, absent):
        assert problems(compose(id=absent)) == ["id: is missing; write id: req_20240115_001"]
        assert read_request(compose(id=absent), numbered=False).id == ""

    @pytest.mark.parametrize(("value", "words"), [(7, "must be text, not 7"), ("", "must not be empty")])
    def test_an_id_that_is_no_text_is_refused(self, compose, problems, value, words):
        assert words in problems(compose(id=value))[0]
        assert words in problems(compose(id=value), numbered=False)[0]


class TestTheName:
    @pytest.mark.spec("S0-07", "S0-40")
    @pytest.mark.parametrize("name", DOCUMENT_NAMES)
    def test_the_names_of_the_document_are_accepted_without_a_word(self, compose, warnings, name):
        assert warnings(compose(name=name)) == []

    @pytest.mark.spec("S0-07")
    @pytest.mark.parametrize(
        "name",
        [
            *(
                "GithubScraper",
                "github-scraper",
                "9x",
                "",
                " ",
                "a__b",
                "_a",
                "a_",
                "a b",
                "a.b",
                "ä_b",
                "class",
                "import",
            ),
            *("a_" + "b" * 63, "a/b", "..", "None", "a\nb"),
        ],
    )
    def test_another_name_is_refused(self, compose, problems, name):
        (problem,) = problems(compose(name=name))
        assert problem.startswith("name: ")
        assert "github_stargazer_scraper" in problem

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            *(
                (name, "is a module that tools import")
                for name in ("os", "json", "string", "toolcrib", "orjson", "click")
            ),
            *((name, "is a module that tools import") for name in ("sitecustomize", "usercustomize", "conftest")),
            *((name, "is the name of a device on Windows") for name in ("con", "nul", "com1", "lpt9")),
        ],
    )
    def test_the_name_of_a_module_or_a_device_is_refused_with_the_cure(self, compose, problems, name, reason):
        cure = "say the target and the action, such as github_stargazer_scraper"
        assert problems(compose(name=name)) == [f'name: "{name}" {reason}; {cure}']

    @pytest.mark.spec("S0-07")
    def test_sixty_four_letters_are_allowed(self, compose):
        assert len(read_request(compose(name="a_" + "b" * 62)).name) == 64

    @pytest.mark.spec("S0-40")
    def test_a_name_of_one_word_comes_with_a_warning(self, compose, warnings):
        assert warnings(compose(name="scraper")) == [
            "name: 'scraper' is one word; say the target and the action, such as github_stargazer_scraper"
        ]


class TestThePlainFields:
    @pytest.mark.parametrize(
        ("field", "sample"),
        [
            pytest.param("name", "github_stargazer_scraper", marks=pytest.mark.spec("S0-07")),
            pytest.param("description", "what the tool does", marks=pytest.mark.spec("S0-08")),
            pytest.param("priority", "high | medium | low", marks=pytest.mark.spec("S0-09")),
            pytest.param("requested_by", "fullsend", marks=pytest.mark.spec("S0-10")),
        ],
    )
    def test_what_is_required_has_to_be_there(self, compose, problems, field, sample):
        assert problems(compose(**{field: ...})) == [f"{field}: is missing; write {field}: {sample}"]
        assert problems(compose(**{field: None})) == [f"{field}: is missing; write {field}: {sample}"]
        assert problems(compose(**{field: " \n"})) == [f"{field}: must not be empty; write {field}: {sample}"]
        assert problems(compose(**{field: 5})) == [f"{field}: must be text, not 5; write it in quotes"]

    def test_a_text_that_is_refused_is_not_said_to_be_empty_too(self, compose, problems):
        assert problems(compose(description="a\x1b[0m")) == [
            "description: holds the control character U+001B; remove it"
        ]

    @pytest.mark.spec("S0-09")
    @pytest.mark.parametrize("word", ["high", "medium", "low"])
    def test_the_three_priorities_are_accepted(self, compose, word):
        assert read_request(compose(priority=word)).priority == word

    @pytest.mark.spec("S0-09")
    def test_an_unknown_priority_is_refused(self, compose, problems):
        assert problems(compose(priority="urgent")) == ['priority: "urgent" is unknown; write one of high, medium, low']

    @pytest.mark.spec("S0-09")
    def test_capitals_are_understood_with_a_warning(self, compose, warnings):
        text = compose(priority="HIGH", experiment_blocked="exp_1")
        assert warnings(text) == ['priority: "HIGH" is understood as high; write high']
        assert read_request(text).priority == "high"

    @pytest.mark.spec("S0-10")
    @pytest.mark.parametrize("who", ["FULLSEND", "fullsend_listener", "orchestrator"])
    def test_another_requester_is_kept_with_a_warning(self, compose, warnings, who):
        assert warnings(compose(requested_by=who)) == [f'requested_by: "{who}" is kept; the format always has fullsend']
        assert read_request(compose(requested_by=who)).requested_by == who

    @pytest.mark.spec("S0-11")
    def test_an_experiment_may_wait_for_it(self, compose, warnings):
        text = compose(experiment_blocked="exp_20240115_github_stars")
        assert read_request(text).experiment == "exp_20240115_github_stars"
        assert read_request(compose()).experiment == ""
        assert warnings(text) == []

    @pytest.mark.spec("S0-11")
    @pytest.mark.parametrize("value", [5, True, ["exp_1"], {"id": "exp_1"}])
    def test_an_experiment_that_is_no_text_is_refused(self, compose, problems, value):
        assert problems(compose(experiment_blocked=value)) == [
            f"experiment_blocked: must be text, not {json.dumps(value)}; write it in quotes"
        ]

    def test_an_experiment_is_one_line(self, compose, problems):
        (problem,) = problems(compose(experiment_blocked="exp\n1"))
        assert (
            problem == 'experiment_blocked: "exp\\n1" contains characters that are not printable; write it on one line'
        )

    def test_the_other_name_of_the_experiment_is_understood(self, compose, warnings):
        text = compose(experiment_id="exp_1")
        assert warnings(text) == ["experiment_id: is understood as experiment_blocked; write that"]
        request = read_request(text)
        assert (request.experiment, dict(request.extra)) == ("exp_1", {})

    def test_of_both_names_of_the_experiment_the_right_one_counts(self, compose, warnings):
        text = compose(experiment_id="exp_1", experiment_blocked="exp_2")
        assert warnings(text)[0].startswith("experiment_id: is kept and not read")
        request = read_request(text)
        assert (request.experiment, dict(request.extra)) == ("exp_2", {"experiment_id": "exp_1"})

    @pytest.mark.spec("S0-30")
    @pytest.mark.parametrize(
        ("priority", "experiment", "said"),
        [
            ("high", "exp_1", []),
            ("high", ..., ["priority: is high although no experiment is blocked; write experiment_blocked, or medium"]),
            ("medium", "exp_1", []),
            ("medium", ..., []),
            ("low", "exp_1", ["priority: is low although an experiment is blocked; write high, or remove experiment_blocked"]),
            ("low", ..., []),
        ],
    )  # fmt: skip
    def test_the_priority_says_whether_an_experiment_waits(self, compose, warnings, priority, experiment, said):
        assert warnings(compose(priority=priority, experiment_blocked=experiment)) == said

    @pytest.mark.spec("S0-13")
    def test_unknown_keys_are_kept_with_a_warning(self, compose, warnings):
        text = compose(success_criteria=["95 %"], requirments=["x"])
        assert warnings(text) == [
            "success_criteria: is kept and not read; remove it, or say it in the description",
            "requirments: is kept and not read; did you mean requirements?",
        ]
        assert read_request(text).extra == {"success_criteria": ["95 %"], "requirments": ["x"]}

    @pytest.mark.spec("S0-12")
    def test_comments_and_the_order_of_keys_do_not_matter(self):
        first = "tool_request:\n  # a\n  id: req_20240115_001\n  name: a_b # b\n  description: d\n  priority: low\n  requested_by: fullsend\n"
        second = "tool_request:\n  requested_by: fullsend\n  priority: low\n  description: d\n  name: a_b\n  id: req_20240115_001\n"
        one, other = read_request(first), read_request(second)
        assert one.digest == other.digest
        assert (one.id, one.name, one.warnings) == (other.id, other.name, other.warnings)


class TestRequirements:
    @pytest.mark.spec("S0-25")
    def test_the_list_is_kept_word_by_word(self, compose):
        lines = ["Must handle rate limits (5000 req/hr)", "Return partial results on failure", "Zeile: mit Umlaut ä"]
        request = read_request(compose(requirements=lines))
        assert request.requirements == tuple(lines)
        assert request.asks_for_partial_results

    @pytest.mark.spec("S0-25")
    def test_a_colon_that_made_a_mapping_of_a_line_is_told_with_that_line(self):
        text = (
            "tool_request:\n  id: req_20240115_001\n  name: a_b\n  description: d\n  priority: low\n  requested_by: fullsend\n"
            "  requirements:\n    - fine\n    - Errors: try again\n    - 5000\n"
        )
        with pytest.raises(ToolError) as caught:
            read_request(text, place="request.yaml")
        assert caught.value.details == {
            "problems": [
                "request.yaml:9: requirements[1]: is a mapping because of the colon in it; quote this line",
                "request.yaml:10: requirements[2]: must be text, not 5000; quote this line",
            ],
            "line": 9,
            "column": 1,
        }

    @pytest.mark.spec("S0-25", "S0-39")
    @pytest.mark.parametrize(
        ("value", "kind"),
        [({"errors": 5}, "a mapping"), ("be quick", "text"), (5, "a number"), (True, "a boolean")],
    )
    def test_what_is_no_list_is_refused(self, compose, problems, value, kind):
        assert problems(compose(requirements=value)) == [
            f"requirements: must be a list, not {kind}; write one item per line: - …"
        ]

    @pytest.mark.spec("S0-25", "S0-39")
    def test_a_mapping_of_texts_is_read_with_a_warning_and_refused_in_strict_mode(self, compose):
        text = compose(requirements={"errors": ["try again", "never raise"], "speed": "a second"})
        request = read_request(text)
        assert request.requirements == ("errors: try again", "errors: never raise", "speed: a second")
        assert any("requirements: is a mapping" in warning for warning in request.warnings)
        with pytest.raises(ToolError, match="requirements: is a mapping"):
            read_request(text, strict=True)

    def test_a_fence_around_the_example_is_left_out_with_a_warning(self, compose):
        code = "from tools.word_counter import word_counter\n\nword_counter(text='a b')"
        request = read_request(compose(example_usage=f"```python\n{code}\n```"))
        assert request.function == "word_counter"
        assert request.example_usage.strip() == code
        assert any("example_usage: stands in a fence" in warning for warning in request.warnings)

    @pytest.mark.parametrize("count", [100, 101])
    def test_there_are_at_most_a_hundred(self, compose, problems, count):
        text = compose(requirements=["x"] * count)
        if count == 100:
            assert len(read_request(text).requirements) == 100
        else:
            assert problems(text) == ["requirements: has 101 items, the limit is 100; leave some out"]


class TestWhatMayBeAbsent:
    @pytest.mark.spec("S0-39", "S0-14")
    def test_inputs_outputs_requirements_and_example(self, compose, warnings):
        text = compose(inputs=..., outputs=...)
        request = read_request(text)
        assert request.parameters == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
        assert (request.inputs, request.outputs, request.output_schema) == ((), None, None)
        assert (request.requirements, request.example_usage, request.function) == ((), "", "word_counter")
        assert warnings(text) == []

    @pytest.mark.spec("S0-14")
    def test_an_empty_list_of_inputs_means_none(self, compose, warnings):
        assert warnings(compose(inputs=[])) == []
        assert read_request(compose(inputs=[])).inputs == ()

    @pytest.mark.parametrize("field", ["experiment_blocked", "inputs", "outputs", "requirements", "example_usage"])
    def test_a_key_without_a_value_is_as_good_as_absent(self, compose, warnings, field):
        assert warnings(compose(**{field: None})) == [f"{field}: is empty; write a value, or remove the key"]

    @pytest.mark.spec("S0-39", "S0-14")
    @pytest.mark.parametrize("field", ["inputs", "outputs", "requirements"])
    @pytest.mark.parametrize("value", ["x", 5, {"a": 1}, False])
    def test_a_list_that_is_none_is_refused(self, compose, problems, field, value):
        assert problems(compose(**{field: value}))[0].startswith(f"{field}: must be a list, not")

    @pytest.mark.spec("S0-39")
    @pytest.mark.parametrize("value", [["x"], 5, {"a": 1}, False])
    def test_an_example_that_is_no_text_is_refused(self, compose, problems, value):
        assert problems(compose(example_usage=value))[0].startswith("example_usage: must be text, not")


class TestEverythingAtOnce:
    def test_every_defect_is_told_in_the_order_of_the_lines(self):
        text = (
            "tool_request:\n"
            "  id: REQ_1\n"
            "  name: Bad-Name\n"
            "  priority: urgent\n"
            "  inputs:\n"
            "    - name: class\n"
            "      type: date\n"
            "  outputs: none\n"
            "  requirements:\n"
            "    a: 5\n"
            "  example_usage: 'f('\n"
        )
        with pytest.raises(ToolError) as caught:
            read_request(text, place="request.yaml")
        assert [problem.split(": ")[0:2] for problem in caught.value.details["problems"]] == [
            ["request.yaml:1", "description"],
            ["request.yaml:1", "requested_by"],
            ["request.yaml:2", "id"],
            ["request.yaml:3", "name"],
            ["request.yaml:4", "priority"],
            ["request.yaml:6", "inputs[0].name"],
            ["request.yaml:6", "inputs[0].description"],
            ["request.yaml:7", "inputs[0].type"],
            ["request.yaml:8", "outputs"],
            ["request.yaml:9", "requirements"],
            ["request.yaml:11", "example_usage"],
        ]
        assert caught.value.details["line"] == 1

    def test_strict_reading_tells_warnings_and_problems_together(self, compose, problems):
        assert len(problems(compose(name="word", priority="urgent"), strict=True)) == 2
        assert len(problems(compose(name="word", priority="urgent"))) == 1

    def test_json_from_any_library_is_read(self, compose):
        text = json.dumps(json.loads(compose(description="a 😀 \\ud83d\\ude00 b")))
        assert "\\ud83d\\ude00 \\\\ud83d" in text
        request = read_request(text)
        assert request.description == "a 😀 \\ud83d\\ude00 b"
        assert request.text == text
        assert read_request(with_id(text, "req_20240115_002")).digest == request.digest

    @pytest.mark.parametrize("half", ["\\ud83d", "\\ude00", "\\ude00\\ud83d", "\\ud83dx\\ude00"])
    def test_half_a_letter_is_refused(self, compose, problems, half):
        assert "correct the YAML there" in problems(compose(description="X").replace("X", half))[0]

    def test_a_document_in_bytes_is_the_same(self, compose):
        assert read_request(compose().encode()) == read_request(compose())


class TestTextsThatHide:
    @pytest.mark.parametrize("letter", ["\u202e", "\u200b", "\u2066", "\U000e0041", "\ue000", "\xad", "\u2028"])
    def test_letters_that_people_do_not_see_come_with_a_warning(self, compose, warnings, letter):
        said = f"holds U+{ord(letter):04X}, which people do not see and models read; remove it"
        escaped = compose(description=f"a{letter}b").replace(letter, f"\\U{ord(letter):08x}")
        assert warnings(escaped) == [f"description: {said}"]
        inputs = [{"name": "a", "type": "string", "description": f"a{letter}b"}]
        assert warnings(compose(inputs=inputs)) == [f"inputs[0].description: {said}"]
        assert warnings(compose(requirements=[f"a{letter}b"])) == [f"requirements[0]: {said}"]

    @pytest.mark.parametrize("letter", ["\\u0000", "\\u001b", "\\u0085", "\\x7f"])
    def test_control_characters_are_refused(self, compose, problems, letter):
        text = compose(description="aXb").replace("X", letter)
        if letter == "\\u0085":  # a line break
            assert read_request(text).description == "a\x85b"
        else:
            assert "holds the control character U+00" in problems(text)[0]

    def test_emoji_and_every_script_are_fine(self, compose, warnings):
        assert warnings(compose(description="数える 👩‍💻 ❤️ कौन שלום é\nzweite Zeile\tx")) == []
