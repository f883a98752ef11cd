"""The document's own examples of a tool and of its two kinds of implementation, comments and all."""

import json

import pytest

from app_lifespan import local_app
from sample_tools import http_call, http_run
from toolcrib import Bundle, Crib
from toolcrib.features.bundles.format import read_stored_tool, read_tool
from toolcrib.lib.document_format import write_tool
from toolcrib.lib.documents import read_jsonc
from toolcrib.lib.names import is_uuid7

BUNDLE = "018faf50-b7b6-7a01-9a05-a22a6e0af101"
URL = "https://api.weatherapi.com/v1/current.json"


@pytest.fixture
def example(fixtures):
    """Read one of the examples, which are JSON but for their comments."""

    def read(name):
        return read_jsonc((fixtures / "platform" / name).read_bytes(), name)

    return read


def put(document: dict):
    return read_tool(document, bundle_id=BUNDLE, slug="weather", version="v2")


@pytest.mark.spec("S1-17", "S1-18", "S1-19")
def test_the_tool_of_the_document_is_read_and_kept_as_it_is_written(example):
    reading = put(example("tool.json"))
    assert reading.tool.name == "weather"
    assert reading.tool.version == "v2"
    assert reading.tool.display_name == "Weather report"
    assert reading.tool.description == "Fetch current weather for a city"
    assert reading.tool.run == http_run(http_call(url=f"{URL}?q=${{city}}"))
    written = example("tool.json")
    times = {written.pop("createdAt"), written.pop("modifiedAt")}
    assert written.items() <= reading.document.items()
    assert set(reading.document) - set(written) == {"toolID"}
    assert not times & {str(value) for value in reading.document.values()}


@pytest.mark.spec("S1-16")
def test_the_tool_of_the_document_gets_the_id_that_it_does_not_name(example):
    first, second = put(example("tool.json")), put(example("tool.json"))
    assert is_uuid7(first.tool.id)
    assert first.document["toolID"] == first.tool.id != second.tool.id


@pytest.mark.spec("S1-17")
def test_the_file_of_the_document_lies_in_the_store_as_it_is(fixtures):
    data = (fixtures / "platform" / "tool.json").read_bytes()
    reading = read_stored_tool(data, bundle=Bundle(id=BUNDLE, slug="reports"), place="weather@v2.json")
    assert reading.tool.address == "reports/weather@v2"
    assert reading.document["createdAt"] == "2024-05-14T13:44:00.000Z"
    assert reading.document["modifiedAt"] == "2024-06-01T09:17:10.000Z"
    again = read_stored_tool(write_tool(reading.document), bundle=Bundle(id=BUNDLE, slug="reports"), place="x")
    assert again.tool.content_hash == reading.tool.content_hash
    assert again.tool.id == reading.tool.id


@pytest.mark.spec("S1-26")
def test_the_go_block_names_the_very_key_of_a_function(example):
    tool = put({**example("tool.json"), "type": "go", "impl": example("go_block.json")}).tool
    assert (tool.kind, tool.run.key, tool.run.model) == ("function", "github.com/acme/agent/tools.Weather", "")
    assert tool.source_type == "go"


@pytest.mark.spec("S1-27", "S1-31", "S1-32", "S1-33", "S1-34", "S1-36")
def test_the_http_block_says_all_there_is_to_say_of_a_request(example):
    tool = put({**example("tool.json"), "impl": example("http_block.json")}).tool
    request = http_call(
        url=f"{URL}?q=${{city}}&key=${{WEATHER_API_KEY}}",
        method="GET",
        headers={"User-Agent": "MyApp/${version}"},
        body="",
        success=frozenset({200}),
        timeout_ms=10_000,
        encoding="json",
        extract="$.current.condition.text",
        error_mode="fail",
    )
    assert tool.run == http_run(request)
    assert tool.limits.timeout_ms == 10_000
    assert tool.requires == {"net.http"}


@pytest.mark.spec("S1-17", "S1-59")
async def test_the_tool_of_the_document_is_put_over_http_with_its_comments(fixtures, tmp_path):
    async with Crib(tmp_path) as crib:
        crib.bundles.put_bundle(BUNDLE, {"slug": "reports", "displayName": "Reports", "isEnabled": True})
        body = (fixtures / "platform" / "tool.json").read_bytes()
        status, answer = await send(local_app(crib), "PUT", "weather/version/v2", body)
        assert (status, answer["displayName"], answer["toolID"][14]) == (201, "Weather report", "7")
        assert crib.bundles.tool(BUNDLE, "weather", "v2").tool.run == http_run(
            http_call(url=f"{URL}?q=${{city}}"), bundle=BUNDLE
        )


async def send(app, method: str, place: str, body: bytes) -> tuple[int, dict]:
    """Send one request for a tool of the bundle; the status and the body of the answer."""
    heard: list[dict] = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def answer(message):
        heard.append(message)

    path = f"/tools/bundles/{BUNDLE}/tools/{place}"
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
    await app({**scope, "headers": headers, "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8765)}, receive, answer)
    return heard[0]["status"], json.loads(heard[1]["body"])
