"""What the list says of a tool beside its schemas, how it is paged, and what a result carries beside its value."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.interfaces.mcp.conftest import OLD

from toolcrib import Intent, tool
from toolcrib.features.functions.definition import tool_of
from toolcrib.interfaces.mcp import tool_list
from toolcrib.model.result import Outcome


def look(query: str) -> str:
    """Look something up."""
    return query


@pytest.mark.parametrize("wire", ["2026-07-28", OLD])
async def test_title_annotations_and_icons_are_listed_and_an_icon_that_no_client_may_load_is_not(client_of, wire):
    icon = {"src": "https://tools.example/look.png", "mimeType": "image/png", "sizes": ["48x48"]}
    wrong = [{"src": "file:///etc/passwd"}, {"src": "javascript:alert(1)"}, {"src": 5}, "x"]
    described = replace(
        tool_of(look), display_name="Look up", side_effects="none", idempotent=True, metadata={"icons": [*wrong, icon]}
    )
    client = client_of(described)
    client = client if wire == client.version else await client.open(wire)
    [listed] = (await client.ask("tools/list")).result["tools"]
    assert (listed["title"], listed["icons"]) == ("Look up", [icon])
    assert listed["annotations"]["readOnlyHint"] is True
    assert listed["annotations"]["idempotentHint"] is True


async def test_every_tool_is_listed_once_over_the_pages_in_one_order(client_of, monkeypatch):
    monkeypatch.setattr(tool_list, "PAGE", 2)
    tools = [replace(tool_of(look), name=f"look_{number}") for number in (3, 1, 4, 0, 2)]
    client = client_of(*tools)
    names: list[str] = []
    cursor: dict[str, str] = {}
    sizes = []
    while cursor is not None and len(sizes) < 10:
        page = (await client.ask("tools/list", dict(cursor))).result
        names += [listed["name"] for listed in page["tools"]]
        sizes.append(len(page["tools"]))
        cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
    assert (names, sizes) == ([f"look_{number}" for number in range(5)], [2, 2, 1])


async def test_intents_and_the_facts_of_a_call_stand_in_its_meta(client_of):
    @tool
    def leave() -> object:
        """Say goodbye, and end the session."""
        return Outcome(value="bye", intents=(Intent(type="END_SESSION", fields={"after": "reply"}),))

    told = (await client_of(leave).call("leave")).result
    assert told["_meta"]["toolcrib/intents"] == [{"type": "END_SESSION", "after": "reply"}]
    assert told["_meta"]["toolcrib/meta"]["tool"] == "leave"
