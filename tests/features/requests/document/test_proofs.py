"""What a request may say besides the format: what the tool may do, and how it can be proved."""

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.document.extensions import read_answers
from toolcrib.model.toolrequest import Example, RecordedAnswer

URL = "https://api.example.com/users"


def test_a_request_that_says_nothing_asks_for_nothing(compose):
    request = read_request(compose())
    assert (request.capabilities, request.hosts, request.examples, request.answers) == (frozenset(), None, (), ())


def test_capabilities_and_hosts_are_taken(compose):
    hosts = ["api.example.com", "*.example.org", "example.com:8443", "[2606:4700::1]:443", "93.184.216.34"]
    request = read_request(compose(capabilities=["net.http", "fs.read"], hosts=hosts), strict=True)
    assert request.capabilities == {"net.http", "fs.read"}
    assert request.hosts == tuple(hosts)


def test_no_hosts_at_all_are_another_request_than_none_named(compose):
    assert read_request(compose(hosts=[])).hosts == ()


@pytest.mark.parametrize("name", ["net", "", "net http", "*", 5, None, {"net": "http"}, "a." * 200 + "b"])
def test_what_is_no_capability_is_refused(compose, problems, name):
    (problem,) = problems(compose(capabilities=[name]))
    assert problem.startswith("capabilities[0]: ")


@pytest.mark.parametrize(
    "host",
    [
        "",
        "https://example.com",
        "example.com/x",
        "*.1.2.3.4",
        "*",
        "a b",
        "user@example.com",
        "01.2.3.4",
        "*.[::1]",
        5,
        "x:99999",
    ],
)
def test_what_is_no_host_is_refused(compose, problems, host):
    (problem,) = problems(compose(hosts=[host]))
    assert problem.startswith("hosts[0]: ")


class TestExamples:
    def test_both_spellings_are_read(self, compose):
        request = read_request(
            compose(
                examples=[
                    {"input": {"text": "a b"}, "output": {"words": 2}},
                    {"arguments": {"text": ""}, "expected": {"words": 0}},
                ]
            ),
            strict=True,
        )
        assert request.examples == (
            Example(arguments={"text": "a b"}, expected={"words": 2}),
            Example(arguments={"text": ""}, expected={"words": 0}),
        )

    def test_without_outputs_any_answer_can_be_expected(self, compose):
        request = read_request(compose(outputs=..., examples=[{"input": {"text": "a"}, "output": None}]))
        assert request.examples == (Example(arguments={"text": "a"}, expected=None),)

    @pytest.mark.parametrize(
        ("example", "words"),
        [
            ({"input": {"text": "a"}}, "examples[0]: must have either output or expected"),
            ({"output": {"words": 1}}, "examples[0]: must have either input or arguments"),
            (
                {"input": {"text": "a"}, "arguments": {}, "output": {"words": 1}},
                "examples[0]: must have either input or arguments",
            ),
            ({"input": ["a"], "output": {"words": 1}}, "examples[0].input: must be a mapping of arguments"),
            ({"input": {"txt": "a"}, "output": {"words": 1}}, "examples[0].input: contradicts the request: "),
            ({"input": {"text": 5}, "output": {"words": 1}}, "examples[0].input: contradicts the request: "),
            ({"input": {"text": "a"}, "output": {"words": "1"}}, "examples[0].output: contradicts the request: "),
            ({"input": {"text": "a"}, "expected": {}}, "examples[0].expected: contradicts the request: "),
            ("text", "examples[0]: must be a mapping"),
        ],
    )
    def test_what_nothing_could_fulfil_is_refused(self, compose, problems, example, words):
        assert problems(compose(examples=[example]))[0].startswith(words)

    def test_they_are_not_held_against_inputs_that_were_refused(self, compose, problems):
        inputs = [{"name": "text", "type": "date", "description": "d"}]
        assert len(problems(compose(inputs=inputs, examples=[{"input": {"text": "a"}, "output": {"words": 1}}]))) == 1


class TestAnswers:
    def test_an_answer_of_a_web_server_is_read(self, compose):
        answer = {"url": URL, "method": "post", "status": 429, "headers": {"Retry-After": 5}, "body": "slow"}
        request = read_request(compose(answers=[answer, {"url": f"{URL}?page=2"}]), strict=True)
        assert request.answers == (
            RecordedAnswer(url=URL, method="POST", status=429, headers={"Retry-After": "5"}, body="slow"),
            RecordedAnswer(url=f"{URL}?page=2"),
        )

    def test_a_body_that_is_a_value_becomes_json(self, compose):
        answers = [{"url": URL, "body": [{"login": "ä"}]}, {"url": URL, "body": {}, "headers": {"content-type": "x/y"}}]
        first, second = read_request(compose(answers=answers)).answers
        assert (first.body, first.headers) == ('[{"login": "ä"}]', {"Content-Type": "application/json"})
        assert (second.body, second.headers) == ("{}", {"content-type": "x/y"})

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ({}, "answers[0].url: is missing"),
            ({"url": "ftp://example.com"}, "answers[0].url: "),
            ({"url": "example.com/users"}, "answers[0].url: "),
            ({"url": URL, "method": "FETCH"}, "answers[0].method: method 'FETCH' is refused"),
            ({"url": URL, "method": 5}, "answers[0].method: must be text"),
            ({"url": URL, "status": 99}, "answers[0].status: must be a number from 200 to 599, not 99"),
            ({"url": URL, "status": "200"}, "answers[0].status: must be a number"),
            ({"url": URL, "status": 200.0}, "answers[0].status: must be a number"),
            ({"url": URL, "status": True}, "answers[0].status: must be a number"),
            ({"url": URL, "headers": ["a"]}, "answers[0].headers: must be a mapping"),
            ({"url": URL, "headers": {"Content-Length": "5"}}, "answers[0].headers: header 'Content-Length' is set by Toolcrib"),
            ({"url": URL, "headers": {"X": "a\r\nY: b"}}, "answers[0].headers: header 'X': the value holds a line break"),
            ({"url": URL, "headers": {f"X{n}": "a" for n in range(65)}}, "answers[0].headers: must be a mapping of at most 64"),
            ({"url": URL, "body": "x" * 100_001}, "answers[0].body: has 100001 characters"),
        ],
    )  # fmt: skip
    def test_what_no_server_answers_is_refused(self, compose, problems, answer, words):
        assert problems(compose(answers=[answer]))[0].startswith(words)


@pytest.mark.parametrize("field", ["capabilities", "hosts", "examples", "answers"])
@pytest.mark.parametrize("value", ["x", 5, {"a": 1}, ["x"] * 65])
def test_each_is_a_list_of_bounded_length(compose, problems, field, value):
    (problem,) = problems(compose(**{field: value}))
    assert problem.startswith(f"{field}: must be a list" if not isinstance(value, list) else f"{field}: has 65 items")


class TestAnswersInADocumentOfTheirOwn:
    @pytest.mark.parametrize("text", [f"- url: {URL}\n  status: 404\n", f"answers:\n  - url: {URL}\n    status: 404\n"])
    def test_a_list_is_read_with_or_without_its_key(self, text):
        assert read_answers(text) == (RecordedAnswer(url=URL, status=404),)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "- url: x\n- status: 5\n",
                "a.yaml:2: answers[1].url: is missing; write url: https://api.example.com/users",
            ),
            (
                f"answers:\n  - url: {URL}\n    status: 5\n",
                "a.yaml:3: answers[0].status: must be a number from 200 to 599",
            ),
            ("answer: []\n", "a.yaml:1: answers: is missing; write answers: and a list, each item with its url"),
            ("", "a.yaml:1: is empty"),
            ("- [", "a.yaml:"),
        ],
    )
    def test_what_is_wrong_is_told_with_its_line(self, text, message):
        with pytest.raises(ToolError) as caught:
            read_answers(text, place="a.yaml")
        assert caught.value.kind is Kind.VALIDATION
        assert any(problem.startswith(message) for problem in caught.value.details["problems"])
