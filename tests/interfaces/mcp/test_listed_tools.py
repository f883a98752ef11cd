"""What the list says of a tool beside its schemas, how it is paged, and what a result carries beside its value."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import pytest
from tests.interfaces.mcp import formats
from tests.interfaces.mcp.conftest import OLD

from toolcrib import Crib, Intent, ToolError, tool, tool_of
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


ICON = {"src": "https://tools.example/add.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}


async def test_a_tool_of_every_format_gives_its_title_and_icons(client_of, tmp_path, monkeypatch):
    options = f'@tool(title="Sum", icons=[{ICON!r}])'
    files = {
        "toolcrib.toml": ("host_of_formats", "host_of_icons"),
        "host_of_icons.py": ("@tool", options),
        f"tools/{formats.PLAIN}.py": ("def ", f"from toolcrib import tool\n\n\n{options}\ndef "),
        f".ai/tools/numbers/{formats.SCRIPT}.py": (
            "__category__",
            f'__metadata__ = {{"title": "Sum", "icons": [{ICON!r}]}}\n__category__',
        ),
        "tools/add-folder/schema.json": (
            '"category"',
            f'"displayName": "Sum", "icons": {json.dumps([ICON])}, "category"',
        ),
    }
    # A module of its own: that of the same name may have been imported from another project.
    monkeypatch.setitem(formats.FILES, "host_of_icons.py", formats.FILES["host_of_formats.py"])
    for path, (before, after) in files.items():
        monkeypatch.setitem(formats.FILES, path, formats.FILES[path].replace(before, after, 1))
    monkeypatch.setattr(formats, "DOCUMENT", {**formats.DOCUMENT, "displayName": "Sum", "icons": [ICON]})
    monkeypatch.syspath_prepend(tmp_path)
    await asyncio.to_thread(formats.write_project, tmp_path)
    client = client_of(crib=Crib(tmp_path))
    listed = {each["name"]: each for each in (await client.ask("tools/list")).result["tools"]}
    for name in formats.NAMES:
        assert (listed[name].get("title"), listed[name].get("icons")) == ("Sum", [ICON])


WRONG = [
    ("x", "must be a list"),
    (["x"], "must be an object"),
    ([{"src": "file:///etc/passwd"}], "begins with https:// or data:image/"),
    ([{"src": "https://a.example/ b"}], "no spaces"),
    ([{"src": "https://a.example", "href": "x"}], "has no 'href'"),
    ([{"src": "https://a.example", "sizes": "48x48"}], "sizes: must be a list"),
    ([{"src": "https://a.example", "theme": "blue"}], "theme: must be light or dark"),
    ([{"src": "https://a.example", "mimeType": 5}], "mimeType: must be a text"),
    ([{"src": "https://a.example"}] * 9, "only 8 are shown"),
]


@pytest.mark.parametrize(("icons", "problem"), WRONG)
def test_an_icon_that_no_client_can_show_is_refused_in_code_and_warned_of_in_files(icons, problem, tmp_path):
    with pytest.raises(ToolError, match=re.escape(problem)):
        tool_of(tool(icons=icons)(lambda: None))
    with Crib(tmp_path) as crib:
        crib.bundles.put_bundle(formats.BUNDLE, {"slug": "sums", "displayName": "Sums", "isEnabled": True})
        stored = crib.bundles.put_tool(formats.BUNDLE, "add", "v1", {**formats.DOCUMENT, "icons": icons})
        assert any(problem in warning and "icons" in warning for warning in stored.warnings), stored.warnings


async def test_a_schema_with_a_number_beyond_64_bits_is_listed_beside_the_others(client_of):
    @tool(parameters={"type": "object", "properties": {"n": {"type": "integer", "maximum": 2**70}}})
    def count(n: int) -> int:
        """Count."""
        return n

    client = client_of(look, count)
    listed = {each["name"]: each for each in (await client.ask("tools/list")).result["tools"]}
    assert listed["look"]["description"] == "Look something up."
    assert listed["count"]["inputSchema"]["properties"]["n"]["maximum"] == 2**70


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
