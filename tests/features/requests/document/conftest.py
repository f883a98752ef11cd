"""A small request that is right in every respect, and ways to change it."""

import json

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request

SMALL = {
    "id": "req_20240115_001",
    "name": "word_counter",
    "description": "Count the words of a text",
    "priority": "medium",
    "requested_by": "fullsend",
    "inputs": [{"name": "text", "type": "string", "description": "The text", "required": True}],
    "outputs": [{"name": "words", "type": "integer"}],
}


@pytest.fixture
def compose():
    """The small request with other fields; one that is `...` is left out."""

    def compose(**changes) -> str:
        fields = {name: value for name, value in {**SMALL, **changes}.items() if value is not ...}
        return json.dumps({"tool_request": fields}, ensure_ascii=False)

    return compose


@pytest.fixture
def problems():
    """What is wrong with a document, in one refusal."""

    def problems(text, **options):
        with pytest.raises(ToolError) as caught:
            read_request(text, **options)
        error = caught.value
        assert error.kind is Kind.VALIDATION
        assert error.message == "\n".join(error.details["problems"])
        assert error.details["line"] >= 1
        return [problem.partition(": ")[2] for problem in error.details["problems"]]

    return problems


@pytest.fixture
def warnings(problems):
    """What the author should know about a document; strict reading refuses just that."""

    def warnings(text) -> list[str]:
        request = read_request(text)
        found = [warning.partition(": ")[2] for warning in request.warnings]
        assert problems(text, strict=True) == found if found else read_request(text, strict=True) == request
        return found

    return warnings


@pytest.fixture(scope="session")
def outcome():
    """The problems of a document, none if it is read; anything but one clear refusal is an error."""

    def outcome(text, **options):
        try:
            read_request(text, **options)
        except ToolError as error:
            return list(error.details["problems"])
        return []

    return outcome
