"""Every kind of answer, held against the types that the official package generates from the schema of each version."""

from __future__ import annotations

import pytest
from tests.interfaces.mcp import everything
from tests.interfaces.mcp.conftest import NEW, McpClient

SIMPLE = {
    "tools/list": {},
    "resources/list": {},
    "resources/templates/list": {},
    "prompts/list": {},
    "resources/read": {"uri": "test://static-binary"},
    "prompts/get": {"name": "test_prompt_with_image"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
        "argument": {"name": "arg1", "value": "te"},
    },
}
TOOLS = ["test_simple_text", "test_multiple_content_types", "test_audio_content", "test_error_handling"]


@pytest.fixture
def methods():
    """The official types; they take long to import, so only where they are used."""
    from mcp_types import methods

    return methods


@pytest.fixture
def client(client_of) -> McpClient:
    return client_of(crib=everything.make_crib())


@pytest.mark.parametrize("version", [NEW, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_every_answer_is_of_the_official_type(client, methods, version):
    peer = client if version == NEW else await client.open(version)
    for method, params in SIMPLE.items():
        methods.validate_server_result(method, version, (await peer.ask(method, params)).result)
    for name in TOOLS:
        methods.validate_server_result("tools/call", version, (await peer.call(name)).result)


async def test_discovery_and_questions_are_of_the_official_type(client, methods):
    asked = await client.call("test_input_required_result_multiple_inputs")
    assert asked.result["resultType"] == "input_required"
    methods.validate_server_result("tools/call", NEW, asked.result)
    methods.validate_server_result("server/discover", NEW, (await client.ask("server/discover")).result)
