"""Documents of tools in the project folder: live, of the bundle of their folder, and changed by editing their file alone."""

from __future__ import annotations

import json

import pytest

EU = "tools/billing/eu/echo.json"


def write(world, name, text=None, **changes):
    path = world.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {**world.go_body(), "slug": "echo", "version": "v1", **changes}
    path.write_text(json.dumps(document) if text is None else text)
    return path


def messages(world):
    return [problem.message.replace(f"{world.root}/", "") for problem in world.crib.problems]


async def test_a_document_belongs_to_the_bundle_of_its_folder_and_follows_every_edit(world):
    write(world, EU, bundleID=world.other)
    write(world, "bundles/weather/echo.json", description="Another.")
    assert (await world.crib.call("billing-eu/echo", city="Bergen")).value == {"city": "Bergen"}
    assert world.crib.find("weather/echo").tool.description == "Another."
    write(world, EU, argSchema={"type": "object", "properties": {}, "additionalProperties": False}, description="New.")
    entry = world.crib.find("billing-eu/echo")
    assert (entry.tool.version, entry.tool.description) == ("v1", "New.")
    assert (await world.crib.call("billing-eu/echo", city="Bergen")).error.kind == "VALIDATION"
    assert not world.crib.problems


async def test_a_document_may_be_yaml_and_its_problems_name_their_lines(world):
    lines = [
        "slug: echo",
        "version: v1",
        "displayName: Echo",
        "schemaVersion: toolcrib-1",
        "type: go",
        "isEnabled: true",
    ]
    text = "\n".join([*lines, "argSchema: {type: object}", "outputSchema: {}", "impl: {goFunc: echo}"])
    write(world, "tools/a.yaml", f"# Echo.\n{text}")
    write(world, "tools/b.yml", f"# Echo.\n{text.replace('type: go', 'type: gone')}")
    assert (await world.crib.call("echo", city="Oslo")).value == {"city": "Oslo"}
    assert messages(world) == ['tools/b.yml:6: type: "gone" is unknown; write "go", "http" or "sql"']


async def test_what_only_mentions_the_words_of_a_document_is_none(world):
    write(world, "tools/api.json", '{"openapi": "3.1.0", "paths": {}, "x-note": "argSchema"}')
    write(world, "tools/tool_registry.json", '{"version": "1", "tools": [{"argSchema": {}}]}')
    write(world, "tools/list.yaml", "- argSchema")
    assert [tool.name for tool in world.crib.tools if tool.bundle == "tools"] == []
    assert not any("api.json" in line or "list.yaml" in line for line in messages(world))


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_it_is_changed_by_its_file_alone(world, method):
    before = write(world, EU).read_bytes()
    tool = world.crib.find("billing-eu/echo").tool
    path = world.tool_path(bundle_id=world.crib.bundles.bundle_id_of(tool))
    body = {"PUT": world.go_body(), "PATCH": {"isEnabled": False}, "DELETE": None}[method]
    reply = await world.client.ask(method, path, body)
    assert (reply.status, reply.json["kind"]) == (409, "CONFLICT")
    assert reply.json["detail"].startswith(f"echo@v1 is the document {EU}; edit or remove that file")
    assert (world.root / EU).read_bytes() == before
    assert (await world.client.get(path)).json["effectiveEnabled"] is True


async def test_it_is_disabled_in_its_file_by_the_operator_and_with_its_bundle(world):
    path = write(world, EU, isEnabled=False)
    error = (await world.crib.call("echo", city="Oslo")).error
    assert error.message == f'echo is disabled: its isEnabled is false; write "isEnabled": true in {path}:1'
    write(world, EU)
    assert (await world.crib.call("echo", city="Oslo")).ok
    world.crib.switch_tool("billing-eu/echo", on=False)
    assert (await world.crib.call("echo", city="Oslo")).error.kind == "DISABLED"
    world.crib.switch_tool("billing-eu/echo", on=True)
    bundle = world.crib.bundles.bundle_id_of(world.crib.find("echo").tool)
    assert (await world.client.patch(world.bundle_path(bundle), {"isEnabled": False})).status == 200
    assert (await world.crib.call("echo", city="Oslo")).error.kind == "DISABLED"


async def test_a_copy_of_a_stored_document_is_not_taken_for_the_stored_tool(world):
    bundles = world.crib.bundles
    bundles.put_bundle(world.other, {"slug": "stored", "displayName": "Stored", "isEnabled": True})
    stored = bundles.put_tool(world.other, "echo", "v1", world.go_body())
    write(world, EU, toolID=stored.id, bundleID=world.other)
    write(world, "tools/billing/eu/first.json", slug="first")
    copy, first = (world.crib.find(f"billing-eu/{name}").tool for name in ("echo", "first"))
    # What switches a tool finds it by this id.
    assert bundles.bundle_id_of(copy) == bundles.bundle_id_of(first) != world.other
    assert bundles.bundle_id_of(world.crib.find("stored/echo").tool) == world.other
