"""HTTP tools behind the one door: checked before anything leaves, held to their schema, and told without secrets."""

import asyncio
import json

import pytest

from sample_tools import http_call, http_run
from toolcrib import Call, Kind, Limits, Reader, Tool, ToolError
from toolcrib.features.exports.providers import tell
from toolcrib.interfaces.mcp.tool_results import to_wire
from toolcrib.interfaces.mcp.versions import Wire
from toolcrib.toolkit.cli import complain_about

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 1}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
KEY = "sk-9a8b7c6d"


@pytest.fixture
def crib_over(crib_of, bench):
    """A crib with one HTTP tool that may reach the sites of the test."""

    def make(*calls, output_schema=None, limits=None, hosts=None, http_tools=None, **settings):
        tool = Tool(
            name="weather",
            description="The weather of a city.",
            parameters=PARAMETERS,
            output_schema=output_schema,
            run=http_run(*calls),
            requires=frozenset({"net.http"}),
            limits=limits or Limits(),
        )
        endpoints = [site.endpoint for site in bench.sites]
        environment = {"WEATHER_API_KEY": KEY}
        return crib_of(
            tool,
            http_tools={"hosts": endpoints if hosts is None else hosts, **(http_tools or {})},
            egress={"private": endpoints},
            secrets={"environment": ["WEATHER_API_KEY"]},
            environment=environment,
            **settings,
        )

    return make


@pytest.mark.spec("S1-41")
async def test_a_call_of_a_person_becomes_a_request_and_its_answer_a_value(crib_over, serve, answer):
    site = await serve(answer({"current": {"condition": {"text": "Sunny"}}}))
    call = http_call(
        url=site.url("/v1/current.json?q=${city}&key=${WEATHER_API_KEY}"),
        headers={"User-Agent": "MyApp/${version}"},
        success=frozenset({200}),
        extract="$.current.condition.text",
    )
    crib = crib_over(call, output_schema={"type": "string"}, http_tools={"version": "3.1"})
    result = await crib.call("weather", city="Lisbon")
    assert (result.ok, result.value) == (True, "Sunny")
    assert site.targets == [f"GET /v1/current.json?q=Lisbon&key={KEY}"]
    assert site.header("User-Agent") == "MyApp/3.1"
    assert {"status", "attempts", "origin", "contentType", "durationMs"} <= set(result.meta)
    assert KEY not in json.dumps(result.to_json())


async def test_what_an_api_says_of_its_error_reaches_models_and_people_without_secrets(
    crib_over, serve, answer, capsys
):
    site = await serve(answer({"error": f"unknown city; your key {KEY} is fine"}, "422 No"))
    crib = crib_over(http_call(url=site.url("/${city}"), headers={"X-Key": "${WEATHER_API_KEY}"}))
    result = await crib.call("weather", city="Olso")
    said = (
        'the server answered GET with status 422 Unprocessable Content: {"error": "unknown city; your key *** is fine"}'
    )
    assert said in result.error.message
    assert result.error.details["status"] == 422
    complain_about(result.error)
    model = json.loads(tell(result))["message"]
    client = to_wire(result, None, Wire(version="2025-06-18"))["content"][0]["text"]
    person = capsys.readouterr().err
    assert all(said in heard for heard in (model, client, person))
    assert KEY not in model + client + person


@pytest.mark.spec("S1-79", "S1-101")
async def test_the_value_that_was_taken_out_is_held_to_the_output_schema(crib_over, serve, answer):
    site = await serve([answer({"t": 21}), answer({"t": "warm"})])
    crib = crib_over(http_call(url=site.url(), extract="$.t"), output_schema={"type": "integer"})
    good, bad = [await crib.call("weather", city="Oslo") for _ in range(2)]
    assert (good.ok, good.value) == (True, 21)
    assert (bad.ok, bad.error.kind) == (False, Kind.OUTPUT_INVALID)
    assert not bad.refused


@pytest.mark.spec("S1-36")
@pytest.mark.parametrize(("encoding", "expected"), [("json", None), ("text", "")])
async def test_an_empty_answer_is_not_held_to_the_output_schema(crib_over, serve, answer, encoding, expected):
    site = await serve(answer(b"", "404 Not"))
    call = http_call(url=site.url(), error_mode="empty", encoding=encoding)
    result = await crib_over(call, output_schema={"type": "integer"}).call("weather", city="Oslo")
    assert (result.ok, result.value) == (True, expected)


@pytest.mark.spec("S1-40")
async def test_a_host_that_is_not_allowed_is_refused_at_the_door_and_seen_by_explain(crib_over, serve, answer):
    site = await serve(answer(b"1"))
    crib = crib_over(http_call(url=site.url()), hosts=["api.example.com"], grants={"*": ["net.http"]})
    result = await crib.call("weather", city="Oslo")
    assert (result.error.kind, result.refused) == (Kind.HOST_NOT_ALLOWED, True)
    assert result.error.details["host"] == "127.0.0.1"
    explanation = crib.explain("weather", city="Oslo")
    assert explanation.findings[-1].verdict.kind is Kind.HOST_NOT_ALLOWED
    assert site.connections == 0


async def test_all_that_is_missing_for_a_call_is_said_at_once(crib_over, serve, answer):
    site = await serve(answer(b"1"))
    url = site.url("/${city}").replace(site.endpoint, "10.0.0.1:8080")
    headers = {"X-Key": "${secret:SHOP_KEY}", "X-City": "${city}"}
    auth = {"type": "basic", "username": "${secret:SHOP_USER}", "password": "${secret:SHOP_KEY}"}
    calls = http_call(name="first", url=url, headers=headers, auth=auth), http_call(url=site.url("/${first.id}"))
    lacks = [
        "headers.X-Key: ${secret:SHOP_KEY}: there is no secret of that name",
        "10.0.0.1:8080 is not among the allowed hosts (api.example.com)",
        "10.0.0.1 lies in 10.0.0.0/8 (private)",
        "${secret:SHOP_USER}: there is no secret of that name",
        f"{site.endpoint} is not among the allowed hosts (api.example.com)",
    ]
    crib = crib_over(*calls, hosts=["api.example.com"], grants={"*": ["net.http"]})
    told = crib.explain("weather", city="Oslo").findings[-1].verdict
    assert (told.kind, told.details["problems"]) == (Kind.VALIDATION, lacks)
    error = (await crib.call("weather", city="Oslo")).error
    assert (error.kind, error.details["problems"]) == (Kind.VALIDATION, lacks)
    cures = [
        "run: crib secret set SHOP_KEY",
        'add "10.0.0.1:8080" to',
        'egress.private = ["10.0.0.1:8080"]',
        "run: crib secret set SHOP_USER",
        f'add "{site.endpoint}" to',
    ]
    places = [error.message.index(text) for pair in zip(lacks, cures, strict=True) for text in pair]
    assert places == sorted(places)
    assert "crib secret" not in error.told_to(Reader.MODEL).message + str(error.told_to(Reader.MODEL).details)
    # A value that is refused does not keep the rest from being told, and stands first.
    error = (await crib.call("weather", city="..")).error
    assert [reason.partition(";")[0] for reason in error.details["problems"][:2]] == [
        'url: a value leaves a part of the path empty, "." or ".."',
        "${secret:SHOP_KEY}: there is no secret of that name",
    ]
    assert site.connections == 0


@pytest.mark.parametrize("parameters", [{"type": "object"}, PARAMETERS])
async def test_what_an_argument_or_an_answer_may_give_is_not_missing_for_every_call(bench, parameters):
    bench.hosts = ["api.example.com"]
    first = http_call(name="first", url="https://api.example.com/${city}")
    second = http_call(url="https://api.example.com/${first.id}?key=${secret:GONE}")
    with pytest.raises(ToolError, match=r"\$\{city\}.*\$\{secret:GONE\}") as refused:
        bench.check(bench.tool(first, second, parameters=parameters))
    assert [*refused.value.lacks] == ["${secret:GONE}: there is no secret of that name; run: crib secret set GONE"]


async def test_one_thing_that_is_missing_is_told_alone(crib_over, serve, answer):
    site = await serve(answer(b"1"))
    crib = crib_over(http_call(url=site.url(), headers={"X-Key": "${secret:SHOP_KEY}"}), grants={"*": ["net.http"]})
    error = (await crib.call("weather", city="Oslo")).error
    reason = "headers.X-Key: ${secret:SHOP_KEY}: there is no secret of that name"
    assert error.message == f"{reason}; run: crib secret set SHOP_KEY"
    assert error.details == {"name": "SHOP_KEY", "gate": "prepare", "cure": "run: crib secret set SHOP_KEY"}


@pytest.mark.spec("S1-29", "S1-38", "S1-88")
@pytest.mark.parametrize(
    ("parts", "city", "kind"),
    [
        ({"headers": {"X-City": "${city}"}}, "a\r\nEvil: 1", Kind.VALIDATION),
        ({"query": {"x": "${nobody}"}}, "Oslo", Kind.VALIDATION),
        ({"method": "POST", "body": '"${city}"'}, "x" * 2_000, Kind.LIMIT_EXCEEDED),
    ],
)
async def test_what_is_wrong_is_refused_before_dispatch(crib_over, serve, answer, parts, city, kind):
    site = await serve(answer(b"1"))
    crib = crib_over(http_call(url=site.url(), **parts), http_tools={"max_sent_bytes": 1_000})
    result = await crib.call("weather", city=city)
    assert (result.error.kind, result.refused) == (kind, True)
    assert crib.explain("weather", city=city).findings[-1].verdict.kind is kind
    assert site.connections == 0


@pytest.mark.spec("S1-40")
async def test_a_redirect_that_is_refused_happened_after_dispatch(crib_over, serve, answer):
    other = await serve(answer(b"1"))
    site = await serve(answer(b"", "302 Found", Location=other.url()))
    result = await crib_over(http_call(url=site.url()), hosts=[site.endpoint]).call("weather", city="Oslo")
    assert (result.ok, result.error.kind, result.refused) == (False, Kind.HOST_NOT_ALLOWED, False)
    assert other.connections == 0


@pytest.mark.spec("S1-32")
async def test_the_time_limit_is_the_tools_own(crib_over, serve):
    async def never(reader, writer):
        await reader.read()

    site = await serve(lambda _: never)
    crib = crib_over(http_call(url=site.url(), timeout_ms=100), limits=Limits(timeout_ms=100))
    async with asyncio.timeout(25):
        result = await crib.call("weather", city="Oslo")
        await site.gone.wait()
    assert result.error.kind is Kind.TIMEOUT
    assert "no complete response within 100 ms" in result.error.message
    assert result.meta["attempts"] == 1


@pytest.mark.spec("S1-90")
async def test_the_operators_bound_on_repeats_holds(crib_over, serve, answer):
    site = await serve(answer(b"", "503 Later", Retry_After="0"))
    result = await crib_over(http_call(url=site.url()), http_tools={"max_retries": 1}).call("weather", city="Oslo")
    assert (result.error.kind, result.meta["attempts"]) == (Kind.TRANSIENT, 2)
    assert len(site.requests) == 2


@pytest.mark.spec("S1-89")
async def test_the_operators_bound_on_answers_holds(crib_over, serve, answer):
    site = await serve(answer([0] * 1_000))
    result = await crib_over(http_call(url=site.url()), http_tools={"max_response_bytes": 500}).call(
        "weather", city="Oslo"
    )
    assert result.error.kind is Kind.LIMIT_EXCEEDED


async def test_calls_in_voice_mode_are_not_repeated(crib_over, serve, answer):
    site = await serve(answer(b"", "503 Later"))
    crib = crib_over(http_call(url=site.url()))
    result = await crib.call(Call(name="weather", arguments={"city": "Oslo"}, mode="voice"))
    assert (result.error.kind, len(site.requests)) == (Kind.TRANSIENT, 1)


async def test_many_calls_at_once_are_not_mixed_up(crib_over, serve, answer):
    site = await serve(lambda request: answer({"city": request.split(b"?q=")[1].split(b" ")[0].decode()}))
    crib = crib_over(http_call(url=site.url("/?q=${city}"), extract="$.city"))
    cities = [f"city{number}" for number in range(200)]
    results = await asyncio.gather(*(crib.call("weather", city=city) for city in cities))
    assert [result.value for result in results] == cities


async def test_a_tool_with_a_wrong_template_says_so_when_it_is_called(crib_over, serve, answer):
    await serve(answer(b"1"))
    result = await crib_over(http_call(url="https://${host}/")).call("weather", city="Oslo")
    assert result.error.kind is Kind.VALIDATION
    assert "scheme, host and port take no slots" in result.error.message
