"""The description of the API, held against the API itself."""

from __future__ import annotations

import re

import jsonschema_rs
import pytest

from toolcrib.core.plugins import Plugins
from toolcrib.interfaces.http.page_endpoints import write_page
from toolcrib.interfaces.http.routes import registered_tables
from toolcrib.toolkit.http.endpoint import describe_api

METHODS = ("get", "put", "post", "delete", "patch")

TABLES = registered_tables(Plugins())


def operations():
    document = describe_api(TABLES, needs_token=True)
    for path, found in document["paths"].items():
        for method, operation in found.items():
            yield pytest.param(path, method, operation, id=operation["operationId"])


def resolve(document: dict, part: dict) -> dict:
    if "$ref" not in part:
        return part
    for word in part["$ref"].removeprefix("#/").split("/"):
        document = document[word]
    return document


def fits(value: object, name: str) -> bool:
    """Whether a value is of the schema of that name."""
    components = describe_api(TABLES, needs_token=True)["components"]
    schema = {"$ref": f"#/components/schemas/{name}", "components": components}
    return jsonschema_rs.validator_for(schema).is_valid(value)


async def test_the_description_is_served_as_it_is_written(world):
    reply = await world.client.get("/openapi.json")
    assert reply.json == describe_api(TABLES, needs_token=False)
    assert reply.json["openapi"] == "3.1.0"


def test_the_description_says_whether_everybody_needs_a_token():
    assert describe_api(TABLES, needs_token=True)["security"] == [{"token": []}]
    assert describe_api(TABLES, needs_token=False)["security"] == [{"token": []}, {}]


async def test_every_path_that_answers_is_described_with_just_its_methods(world):
    document = describe_api(TABLES, needs_token=True)
    served = {}
    for path in document["paths"]:
        words = {
            "toolSlug": "a",
            "version": "v",
            "sessionID": "s",
            "handle": "00",
            "requestID": "req_20240115_001",
            "approvalID": "a",
            "name": "a",
        }
        place = path.format(bundleID=world.bundle, **words)
        allowed = (await world.client.ask("OPTIONS", place)).headers["allow"].split(", ")
        served[path] = {method.lower() for method in allowed} - {"options", "head"}
    assert served == {path: set(found) for path, found in document["paths"].items()}


def test_every_path_of_the_application_is_described(world):
    routes = world.client.app._router.routes
    # What /mcp takes is described by the protocol that it speaks, and what the web page takes is its own affair.
    own = {path for table in TABLES if not table.described for endpoint in table.endpoints for path in endpoint.names}
    described = {*describe_api(TABLES, needs_token=True)["paths"], *own}
    assert {route.path_format for route in routes} == described
    assert len(routes) == len({route.path for route in routes})


@pytest.mark.parametrize(("path", "method", "operation"), list(operations()))
def test_every_operation_names_what_it_takes_and_what_it_answers(path, method, operation):
    document = describe_api(TABLES, needs_token=True)
    named = {
        parameter["name"]: parameter
        for parameter in (resolve(document, part) for part in operation.get("parameters", []))
    }
    assert re.findall(r"{(\w+)}", path) == [name for name, found in named.items() if found["in"] == "path"]
    assert all(found["description"] and found["schema"] for found in named.values())
    assert method in METHODS
    assert operation["summary"].endswith(".")
    for status, part in operation["responses"].items():
        answer = resolve(document, part)
        assert answer["description"]
        assert ("content" in answer) == (status not in ("204", "304"))
    assert ("requestBody" in operation) == (method in ("put", "patch", "post"))


def test_every_reference_leads_somewhere():
    document = describe_api(TABLES, needs_token=True)

    def references(value):
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    for part in references(document):
        assert resolve(document, part)


@pytest.mark.parametrize(("path", "method", "operation"), list(operations()))
def test_every_example_fits_its_schema(path, method, operation):
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is None:
        return
    name = body["schema"]["$ref"].rpartition("/")[2]
    assert fits(body["example"], name)


async def test_the_examples_are_true_one_after_the_other(world):
    document = describe_api(TABLES, needs_token=True)
    tool = "/tools/bundles/{bundleID}/tools/{toolSlug}/version/{version}"
    parameters = document["components"]["parameters"]
    place = {name: parameters[name]["example"] for name in ("bundleID", "toolSlug", "version")}

    def example(path, method):
        return document["paths"][path][method]["requestBody"]["content"]["application/json"]["example"]

    async def perform(path, method):
        return await world.client.ask(method.upper(), path.format(**place), example(path, method))

    assert (await perform("/tools/bundles/{bundleID}", "put")).status == 201
    made = await perform(tool, "put")
    assert made.status == 201
    assert ["weather.example" in warning for warning in made.json["warnings"]] == [True]
    first, *_ = (await world.client.get(f"/tools/search?q={parameters['q']['example']}")).json["tools"]
    assert first["slug"] == "weather"
    refused = await perform(f"{tool}/invoke", "post")
    assert (refused.status, refused.json["kind"]) == (403, "HOST_NOT_ALLOWED")
    assert (await perform("/crib/explain", "post")).status == 200
    assert (await perform("/crib/sessions", "post")).status == 201
    assert (await perform(tool, "patch")).json["isEnabled"] is False
    assert (await perform("/tools/bundles/{bundleID}", "patch")).json["isEnabled"] is False


@pytest.mark.parametrize(
    ("body", "is_good"),
    [
        ({"type": "go", "impl": {"goFunc": "echo"}}, True),
        ({"type": "go", "impl": {"urlTemplate": "https://a.example"}}, False),
        ({"type": "http", "impl": {"urlTemplate": "https://a.example/${x}", "timeoutMs": 5}}, True),
        ({"type": "http", "impl": {"goFunc": "echo"}}, False),
        ({"type": "http", "impl": {"urlTemplate": "ftp://a.example"}}, False),
        ({"type": "http", "impl": {"calls": [{"name": "a", "urlTemplate": "https://a.example"}]}}, True),
        ({"type": "http", "impl": {"calls": [], "urlTemplate": "https://a.example"}}, False),
        ({"tags": ["a", "a"]}, False),
        ({"isBuiltIn": True}, False),
    ],
)
async def test_the_schema_of_a_tool_says_what_the_server_says(world, body, is_good):
    document = world.go_body(**{"impl": {"goFunc": "echo"}, **body})
    await world.with_bundle()
    reply = await world.client.put(world.tool_path(), document)
    assert (reply.status == 201) is is_good, reply.raw
    assert fits(document, "ToolBody") is is_good


async def test_the_page_for_people_needs_nothing_from_elsewhere_and_runs_nothing(world):
    reply = await world.client.get("/docs")
    page = reply.raw.decode()
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert "<script" not in page
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?!/openapi\.json)[^#"'\s>]""", page)
    assert not re.search(r"\son\w+\s*=", page)
    for operation in (
        found["operationId"]
        for path in describe_api(TABLES, needs_token=True)["paths"].values()
        for found in path.values()
    ):
        assert f'id="{operation}"' in page
    policy = reply.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "script-src" not in policy
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_nothing_in_the_description_becomes_part_of_the_page():
    document = describe_api(TABLES, needs_token=True)
    page = write_page({**document, "info": {**document["info"], "title": '<script>"&', "description": "<b>"}})
    assert "<script" not in page
    assert "&lt;script&gt;&quot;&amp;" in page
    assert "<b>" not in page


async def test_every_kind_of_problem_is_described_where_its_type_points(world):
    from toolcrib import Kind

    page = (await world.client.get("/docs")).raw.decode()
    assert [kind for kind in Kind if f'id="{kind}"' not in page] == []
