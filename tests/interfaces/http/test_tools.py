"""Tools over HTTP: made, read, switched, deleted, and everything that is refused on the way."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import ToolError
from toolcrib.features.bundles.definition import COMPUTED as KNOWN
from toolcrib.features.bundles.format import TIMES

SCHEMA_AT_FAULT = {"type": "object", "properties": {"city": {"type": "nonsense"}}}


@pytest.mark.spec("S1-59", "S1-62", "S1-16", "S1-18", "S1-19", "S1-24", "S1-25")
async def test_a_tool_is_made_and_read_back_with_everything_its_author_wrote(world):
    await world.with_bundle()
    body = world.go_body(createdAt="1999-01-01T00:00:00Z", modifiedAt="1999-01-01T00:00:00Z", tags=["sky"])
    made = await world.client.put(world.tool_path(), body)
    read = await world.client.get(world.tool_path())
    assert made.status == 201
    assert made.headers["location"] == world.tool_path()
    assert read.json == made.json
    for key in ("schemaVersion", "displayName", "description", "type", "argSchema", "outputSchema", "impl", "tags"):
        assert read.json[key] == body[key]
    assert (read.json["slug"], read.json["version"], read.json["bundleID"]) == ("echo", "v1", world.bundle)
    assert read.json["toolID"][14] == "7"
    assert read.json["createdAt"] > "2020"
    assert read.json["createdAt"].endswith("Z")
    assert read.json["modifiedAt"] == read.json["createdAt"]
    assert (read.json["isBuiltIn"], read.json["isEnabled"], read.json["effectiveEnabled"]) == (False, True, True)


@pytest.mark.spec("S1-05")
async def test_two_versions_are_kept_fetched_and_invoked_each_by_its_own(make_world):
    world = make_world(functions={"first": lambda context, arguments: 1, "second": lambda context, arguments: 2})
    await world.with_bundle()
    await world.with_tool("weather", "v1", impl={"goFunc": "first"})
    await world.with_tool("weather", "v2", impl={"goFunc": "second"})
    for version, value in (("v1", 1), ("v2", 2)):
        path = world.tool_path("weather", version)
        assert (await world.client.get(path)).json["version"] == version
        assert (await world.client.post(f"{path}/invoke", {})).json["value"] == value
    assert (await world.client.get(world.tool_path("weather", "v3"))).status == 404


@pytest.mark.spec("S1-42", "S1-45")
async def test_a_slug_of_any_letters_travels_percent_encoded(world):
    await world.with_bundle()
    for slug in ["größe", "天気", "a-1", "Weather", "٣"]:
        made = await world.client.put(world.tool_path(slug, "1.0.0-ß"), world.go_body())
        assert made.status == 201, slug
        assert made.headers["location"].isascii()
        read = await world.client.get(made.headers["location"])
        assert (read.json["slug"], read.json["version"]) == (slug, "1.0.0-ß")
        assert (await world.client.post(made.headers["location"], {})).json["ok"] is True


@pytest.mark.spec("S1-43", "S1-44", "S1-46")
async def test_a_path_with_a_bad_slug_is_refused(world):
    await world.with_bundle()
    before = world.files()
    for slug in [
        "a_b",
        "a%20b",
        "a%2Fb",
        "a%5Cb",
        "a.b",
        "%00",
        "a%0Ab",
        "%F0%9F%99%82",
        "a+b",
        "..",
        "%2e%2e",
        "x" * 65,
        "%C2%BD",
    ]:
        reply = await world.client.put(f"/tools/bundles/{world.bundle}/tools/{slug}/version/%76", world.go_body())
        assert reply.status == 400, slug
        assert "toolSlug" in reply.json["detail"]
        assert world.files() == before


@pytest.mark.spec("S1-43", "S1-46")
async def test_a_path_with_a_bad_version_is_refused(world):
    await world.with_bundle()
    before = world.files()
    for version in ["a_b", "a%20b", "a%2Fb", "%00", "v1%0d%0a", "%F0%9F%99%82", "x" * 65]:
        reply = await world.client.put(f"/tools/bundles/{world.bundle}/tools/%61/version/{version}", world.go_body())
        assert reply.status == 400, version
        assert "version" in reply.json["detail"]
        assert world.files() == before


async def test_a_version_of_dots_alone_is_refused_with_the_reason(world):
    await world.with_bundle()
    before = world.files()
    for version in (".", "..", "...", "%2e%2e", "." * 64):
        path = f"/tools/bundles/{world.bundle}/tools/echo/version/{version}"
        for reply in (await world.client.put(path, world.go_body()), await world.client.get(path)):
            assert reply.status == 400, version
            assert "which clients shorten" in reply.json["detail"]
    assert world.files() == before
    assert (await world.client.put(world.tool_path(version="..-"), world.go_body())).status == 201


async def test_a_call_of_a_place_that_is_none_is_refused_as_such(world):
    for place in ("a/version/a_b", "a.b/version/v1", "%00/version/v1", "a/version/%00"):
        reply = await world.client.post(f"/tools/bundles/{world.bundle}/tools/{place}%41".removesuffix("%41"), {})
        assert (reply.status, reply.json["kind"]) == (400, "VALIDATION"), place


@pytest.mark.spec("S1-46")
async def test_64_runes_are_enough_and_are_runes_and_no_bytes(world):
    await world.with_bundle()
    assert (await world.client.put(world.tool_path("天" * 64, "気" * 64), world.go_body())).status == 201
    assert (await world.client.get(world.tool_path("天" * 64, "気" * 64))).status == 200
    assert (await world.client.put(world.tool_path("天" * 65), world.go_body())).status == 400


async def test_a_path_that_is_no_text_is_refused(world):
    for path in ["%FF", "%C0%AF", "%ED%A0%80", "%zz", "%"]:
        reply = await world.client.get(f"/tools/bundles/{world.bundle}/tools/{path}/version/v1%20".removesuffix("%20"))
        assert reply.status == 400, path
        assert "percent-encoded UTF-8" in reply.json["detail"]


@pytest.mark.spec("S1-59", "S1-67", "S1-48")
async def test_a_second_put_of_the_same_version_conflicts_and_changes_nothing(world):
    await world.with_bundle()
    await world.with_tool()
    before = world.files()
    reply = await world.client.put(world.tool_path(), world.go_body(displayName="Another"))
    assert (reply.status, reply.json["kind"]) == (409, "CONFLICT")
    assert world.files() == before
    assert (await world.client.get(world.tool_path())).json["displayName"] == "Echo"


@pytest.mark.spec("S1-49")
async def test_the_same_pair_may_stand_in_another_bundle(world):
    await world.with_bundle()
    await world.with_bundle(world.other, slug="news")
    first = await world.with_tool()
    second = await world.with_tool(bundle_id=world.other)
    assert first["toolID"] != second["toolID"]


@pytest.mark.spec("S1-59")
async def test_a_tool_in_no_bundle_is_not_made(world):
    reply = await world.client.put(world.tool_path(), world.go_body())
    assert (reply.status, reply.json["kind"]) == (404, "NOT_FOUND")
    assert world.files() == {}


@pytest.mark.spec("S1-105", "S1-18", "S1-59")
@pytest.mark.parametrize(
    "field", ["schemaVersion", "displayName", "type", "isEnabled", "argSchema", "outputSchema", "impl"]
)
async def test_a_tool_without_a_required_key_is_refused_by_its_name(world, field):
    await world.with_bundle()
    body = world.go_body()
    del body[field]
    before = world.files()
    reply = await world.client.put(world.tool_path(), body)
    assert reply.status == 400
    assert any(field in problem for problem in reply.json["problems"])
    assert world.files() == before


BAD_FIELDS = [
    pytest.param("schemaVersion", "", marks=pytest.mark.spec("S1-18")),
    pytest.param("schemaVersion", 1, marks=pytest.mark.spec("S1-18")),
    pytest.param("displayName", "", marks=pytest.mark.spec("S1-19")),
    pytest.param("displayName", None, marks=pytest.mark.spec("S1-19")),
    pytest.param("type", "python", marks=pytest.mark.spec("S1-02")),
    pytest.param("isEnabled", "yes", marks=pytest.mark.spec("S1-20")),
    pytest.param("isEnabled", 1, marks=pytest.mark.spec("S1-20")),
    pytest.param("isBuiltIn", True, marks=pytest.mark.spec("S1-21")),
    pytest.param("argSchema", SCHEMA_AT_FAULT, marks=pytest.mark.spec("S1-22")),
    pytest.param("argSchema", "object", marks=pytest.mark.spec("S1-22")),
    pytest.param("outputSchema", {"type": "nonsense"}, marks=pytest.mark.spec("S1-23")),
    pytest.param("outputSchema", {"pattern": "("}, marks=pytest.mark.spec("S1-23")),
    pytest.param("impl", {"urlTemplate": "https://a.example/"}, marks=pytest.mark.spec("S1-24")),
    pytest.param("impl", {"goFunc": ""}, marks=pytest.mark.spec("S1-26")),
    pytest.param("impl", [], marks=pytest.mark.spec("S1-24")),
    pytest.param("toolID", "f47ac10b-58cc-4372-a567-0e02b2c3d479", marks=pytest.mark.spec("S1-16")),
    pytest.param("toolID", 7, marks=pytest.mark.spec("S1-16")),
    pytest.param("bundleID", "018faf50-b7b6-7a01-9a05-a22a6e0af102", marks=pytest.mark.spec("S1-100", "S1-15")),
    pytest.param("bundleID", "b1", marks=pytest.mark.spec("S1-15")),
    pytest.param("slug", "other", marks=pytest.mark.spec("S1-100")),
    pytest.param("version", "v2", marks=pytest.mark.spec("S1-100")),
]


@pytest.mark.parametrize(("field", "value"), BAD_FIELDS)
async def test_a_tool_with_a_bad_value_is_refused_by_the_name_of_its_key(world, field, value):
    await world.with_bundle()
    before = world.files()
    reply = await world.client.put(world.tool_path(), world.go_body(**{field: value}))
    assert reply.status == 400
    assert reply.json["kind"] == "VALIDATION"
    assert any(field in problem for problem in reply.json["problems"])
    assert world.files() == before


HTTP = {"method": "GET", "urlTemplate": "https://api.example/x?q=${city}"}
BAD_REQUESTS = [
    pytest.param({"goFunc": "echo"}, marks=pytest.mark.spec("S1-24")),
    pytest.param({**HTTP, "method": "FOO"}, marks=pytest.mark.spec("S1-27")),
    pytest.param({**HTTP, "urlTemplate": "ftp://api.example/"}, marks=pytest.mark.spec("S1-37")),
    pytest.param({**HTTP, "urlTemplate": "${city}/x"}, marks=pytest.mark.spec("S1-37")),
    pytest.param({**HTTP, "urlTemplate": "file:///etc/passwd"}, marks=pytest.mark.spec("S1-37")),
    pytest.param({**HTTP, "urlTemplate": "https://${city}/x"}),
    pytest.param({**HTTP, "headers": {"Host": "evil"}}),
    pytest.param({**HTTP, "headers": {"X": "a\r\nb: c"}}, marks=pytest.mark.spec("S1-29")),
    pytest.param({**HTTP, "successCodes": [99]}, marks=pytest.mark.spec("S1-31")),
    pytest.param({**HTTP, "timeoutMs": 0}, marks=pytest.mark.spec("S1-32")),
    pytest.param({**HTTP, "responseEncoding": "xml"}, marks=pytest.mark.spec("S1-33")),
    pytest.param({**HTTP, "extractExpr": "$.a["}, marks=pytest.mark.spec("S1-34")),
    pytest.param({**HTTP, "extractExpr": "("}, marks=pytest.mark.spec("S1-35")),
    pytest.param({**HTTP, "errorMode": "ignore"}, marks=pytest.mark.spec("S1-36")),
]


@pytest.mark.parametrize("impl", BAD_REQUESTS)
async def test_an_http_tool_that_could_not_work_is_refused(world, impl):
    await world.with_bundle()
    before = world.files()
    reply = await world.client.put(world.tool_path(), world.go_body(type="http", impl=impl))
    assert reply.status == 400, reply.raw
    assert all("impl" in problem for problem in reply.json["problems"])
    assert world.files() == before


async def test_every_problem_of_a_body_is_told_at_once(world):
    await world.with_bundle()
    reply = await world.client.put(world.tool_path(), world.go_body(isEnabled=1, displayName="", type="x"))
    assert {"isEnabled", "displayName", "type"} <= {problem.split(":")[0] for problem in reply.json["problems"]}


@pytest.mark.spec("S1-100")
async def test_a_body_may_say_what_its_path_says(world):
    await world.with_bundle()
    body = world.go_body(bundleID=world.bundle, slug="echo", version="v1")
    assert (await world.client.put(world.tool_path(), body)).status == 201


@pytest.mark.spec("S1-08")
async def test_a_tool_that_was_read_can_be_written_as_a_new_version(world):
    await world.with_bundle()
    await world.with_tool()
    read = (await world.client.get(world.tool_path())).json
    del read["toolID"]
    made = await world.client.put(world.tool_path(version="v2"), {**read, "version": "v2", "displayName": "Newer"})
    assert made.status == 201
    assert made.json["displayName"] == "Newer"


@pytest.mark.spec("S1-60")
async def test_a_patch_switches_one_version_alone(world):
    await world.with_bundle()
    await world.with_tool()
    await world.with_tool(version="v2")
    off = await world.client.patch(world.tool_path(), {"isEnabled": False})
    assert (off.status, off.json["isEnabled"], off.json["effectiveEnabled"]) == (200, False, False)
    assert off.json["disabledReason"]
    assert (await world.client.post(world.tool_path(), {})).status == 409
    assert (await world.client.post(world.tool_path(version="v2"), {})).status == 200
    on = await world.client.patch(world.tool_path(), {"isEnabled": True})
    assert (on.json["effectiveEnabled"], on.json["disabledReason"]) == (True, "")


@pytest.mark.spec("S1-51", "S1-60")
async def test_a_switch_moves_no_modification_time(world):
    await world.with_bundle()
    made = await world.with_tool()
    await world.client.patch(world.tool_path(), {"isEnabled": False})
    assert (await world.client.get(world.tool_path())).json["modifiedAt"] == made["modifiedAt"]


@pytest.mark.spec("S1-60")
async def test_a_patch_of_a_tool_that_says_more_or_less_than_its_switch_is_refused(world):
    await world.with_bundle()
    await world.with_tool()
    before = world.files()
    for body in [{"isEnabled": True, "displayName": "x"}, {"tags": []}, {}, {"isEnabled": "on"}, {"isEnabled": 0}]:
        assert (await world.client.patch(world.tool_path(), body)).status == 400, body
        assert world.files() == before


@pytest.mark.spec("S1-61")
async def test_a_deleted_tool_is_gone_for_good_and_its_place_is_free(world):
    await world.with_bundle()
    first = await world.with_tool()
    gone = await world.client.delete(world.tool_path())
    assert (gone.status, gone.raw) == (204, b"")
    assert [name for name in world.files() if "echo" in name] == []
    assert (await world.client.get(world.tool_path())).status == 404
    assert (await world.client.delete(world.tool_path())).status == 404
    assert (await world.client.post(world.tool_path(), {})).status == 404
    assert (await world.with_tool())["toolID"] != first["toolID"]


@pytest.mark.spec("S1-75")
async def test_nothing_in_a_bundle_that_is_switched_off_can_be_put_or_patched(world):
    await world.with_bundle()
    await world.with_tool()
    await world.client.patch(world.bundle_path(), {"isEnabled": False})
    before = world.files()
    put = await world.client.put(world.tool_path(version="v2"), world.go_body())
    patched = await world.client.patch(world.tool_path(), {"isEnabled": False})
    assert (put.status, put.json["kind"]) == (409, "DISABLED")
    assert (patched.status, patched.json["kind"]) == (409, "DISABLED")
    assert world.files() == before


async def test_a_name_with_underscores_reads_the_tool_and_makes_none(world):
    await world.with_bundle()
    await world.with_tool("kb-search")
    assert (await world.client.get(world.tool_path("kb_search"))).json["slug"] == "kb-search"
    assert (await world.client.put(world.tool_path("kb_other"), world.go_body())).status == 400


EXAMPLE = """{
  "schemaVersion" : "xyz",
  "bundleID"     : "018faf50-b7b6-7a01-9a05-a22a6e0af101",
  "slug"         : "weather",
  "version"      : "v2",
  "displayName"  : "Weather report",
  "description"  : "Fetch current weather for a city",
  "type"         : "http",          // "go" or "http"
  "isEnabled"    : true,
  "isBuiltIn"    : false,
  "argSchema"    : {"type": "object", "properties": {"city": {"type": "string"}}},         // JSON-Schema
  "outputSchema" : {"type": "string"},         // JSON-Schema
  "impl"         : {
    "method": "GET",
    "urlTemplate": "https://api.weatherapi.com/v1/current.json?q=${city}&key=${WEATHER_API_KEY}",
    "headers": { "User-Agent": "MyApp/${version}" },
    "bodyTemplate": "",
    "successCodes": [200],
    "timeoutMs": 10000,
    "responseEncoding": "json", // "json" | "text"
    "extractExpr": "$.current.condition.text", // JSONPath or Regex
    "errorMode": "fail" // "fail" | "empty"
  },         // See below
  "createdAt"    : "2024-05-14T13:44:00Z",
  "modifiedAt"   : "2024-06-01T09:17:10Z"
}
"""


@pytest.mark.spec("S1-17", "S1-18")
async def test_a_file_with_comments_that_a_person_put_into_the_store_is_served(world):
    await world.with_bundle()
    (world.root / ".toolcrib" / "bundles" / world.bundle / "weather@v2.json").write_text(EXAMPLE)
    read = await world.client.get(world.tool_path("weather", "v2"))
    assert read.status == 200
    assert (read.json["schemaVersion"], read.json["displayName"]) == ("xyz", "Weather report")
    assert read.json["createdAt"].startswith("2024-05-14T13:44:00")
    assert read.json["toolID"][14] == "7"


@pytest.mark.spec("S1-17")
async def test_a_bundle_and_a_tool_may_be_sent_with_comments(world):
    bundle = b"""{
      // the sky, and all that is in it
      "slug": "weather", "displayName": "Weather", /* for now */ "isEnabled": true
    }"""
    assert (await world.client.put(world.bundle_path(), raw=bundle)).status == 201
    made = await world.client.put(world.tool_path("weather", "v2"), raw=EXAMPLE.encode())
    assert (made.status, made.json["displayName"]) == (201, "Weather report")
    assert (await world.client.get(world.tool_path("weather", "v2"))).json == made.json


async def test_comments_in_what_is_sent_lift_no_limit(world):
    await world.with_bundle()
    before = world.files()
    for raw in (
        b'{"isEnabled": true, "isEnabled": false} //',
        b'{"isEnabled": NaN} //',
        b'{"isEnabled": true /* no end',
        b'{"isEnabled": true,} //',
        b'{"a":' * 70 + b"1" + b"}" * 70 + b" //",
        b"// nothing",
    ):
        for path in (world.bundle_path(), world.tool_path()):
            reply = await world.client.put(path, raw=raw)
            assert (reply.status, reply.json["kind"]) == (400, "VALIDATION"), raw
            assert reply.json["detail"].startswith("body:")
    assert world.files() == before


@pytest.mark.spec("S1-82", "S1-59")
async def test_a_time_that_only_the_platform_knows_is_not_taken_over(world):
    await world.with_bundle()
    made = await world.client.put(world.tool_path(), world.go_body(softDeletedAt="x", toggledAt="y"))
    assert (made.status, made.json["effectiveEnabled"]) == (201, True)
    assert "softDeletedAt" not in made.json
    assert (await world.client.post(world.tool_path())).json["ok"] is True


@pytest.mark.spec("S1-82", "S1-59")
async def test_what_could_not_be_read_back_is_refused_before_it_is_stored(world, monkeypatch):
    await world.with_bundle()
    before = world.files()
    # As if one of the keys that must be left out had been overlooked.
    monkeypatch.setattr("toolcrib.features.bundles.format.COMPUTED", frozenset())
    reply = await world.client.put(world.tool_path(), world.go_body(toggledAt="x"))
    assert (reply.status, reply.json["kind"]) == (400, "VALIDATION")
    assert "toggledAt" in reply.json["detail"]
    assert world.files() == before


ANYTHING = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.lists(st.text(max_size=3), max_size=2)
KEYS = (*KNOWN, *TIMES, "tags", "preProcessors", "description", "isBuiltIn", "unknown")


@pytest.mark.spec("S1-82")
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(st.sampled_from(sorted(KEYS)), ANYTHING, max_size=4))
def test_what_was_accepted_can_be_used(world, changes):
    world.crib.bundles.put_bundle(world.bundle, world.bundle_body())
    place = (world.bundle, "echo", "v1")
    with suppress(ToolError):
        made = world.crib.bundles.put_tool(*place, world.go_body(**changes))
        kept = world.crib.bundles.tool(*place)
        world.crib.bundles.delete_tool(*place)
        assert made.tool is not None
        assert kept.tool is not None


@pytest.mark.spec("S1-104")
async def test_a_host_that_is_not_allowed_is_told_when_the_tool_is_made(make_world):
    world = make_world(http_tools={"hosts": ["api.example"]})
    await world.with_bundle()
    allowed = await world.with_tool("allowed", type="http", impl={"urlTemplate": "https://API.example/x"})
    other = await world.with_tool("other", type="http", impl={"urlTemplate": "https://www.api.example/x"})
    assert not any("http_tools.hosts" in warning for warning in allowed["warnings"])
    assert "www.api.example is not among http_tools.hosts" in other["warnings"][-1]


async def test_the_file_of_a_tool_holds_what_its_author_wrote(world):
    await world.with_bundle()
    await world.with_tool()
    [stored] = [json.loads(text) for name, text in world.files().items() if "echo" in name]
    assert stored["impl"] == {"goFunc": "echo"}
    assert "effectiveEnabled" not in stored
