"""A document of a tool that is right, and what reading it with some keys changed comes to."""

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.bundles.format import ReadDocument, read_tool

BUNDLE = "018faf50-b7b6-7a01-9a05-a22a6e0af101"


def a_document(**changes) -> dict:
    document = {
        "schemaVersion": "toolcrib-1",
        "displayName": "Weather report",
        "description": "Tells the weather of a city.",
        "type": "http",
        "isEnabled": True,
        "argSchema": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "outputSchema": {"type": "string"},
        "impl": {"urlTemplate": "https://api.example.com/now?q=${city}"},
    }
    document |= changes
    return {name: value for name, value in document.items() if value is not ...}


@pytest.fixture
def bundle_id() -> str:
    return BUNDLE


@pytest.fixture
def document():
    """Make a document; `...` leaves a key out."""
    return a_document


@pytest.fixture
def read():
    """Read a document with these changes as a client sends it."""

    def read(*, to_slug="weather", to_version="v2", to_bundle=BUNDLE, secrets=(), **changes) -> ReadDocument:
        document = a_document(**changes)
        return read_tool(document, bundle_id=to_bundle, slug=to_slug, version=to_version, secrets=secrets)

    return read


@pytest.fixture
def problems(read):
    """Everything that is wrong with a document that has these changes."""

    def refused(**changes):
        with pytest.raises(ToolError) as caught:
            read(**changes)
        assert caught.value.kind is Kind.VALIDATION
        assert caught.value.message == "\n".join(caught.value.details["problems"])
        return list(caught.value.details["problems"])

    return refused


@pytest.fixture
def request_problems(problems):
    """Everything that is wrong with a document whose request has these keys, `...` for one that is absent."""

    def refused(**keys) -> list[str]:
        impl = {"urlTemplate": "https://api.example.com/now?q=${city}"} | keys
        return problems(impl={name: value for name, value in impl.items() if value is not ...})

    return refused
