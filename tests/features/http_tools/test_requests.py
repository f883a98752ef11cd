"""What a tool of requests sends: templates filled in the order of names, refused before anything leaves where it is wrong."""

import json

import pytest

from sample_tools import http_call
from toolcrib import Kind, ToolError
from toolcrib.features.http_tools.slot_values import PLATFORM

KEY = "sk-4f/9+a B%"
CITY = {"type": "object", "properties": {"city": {"type": "string"}, "user": {"type": "object"}}}


@pytest.mark.spec("S1-41")
async def test_the_example_of_the_document_arrives_as_it_is_meant(bench, serve, answer, secrets_of):
    site = await serve(answer({"current": {"condition": {"text": "Sunny"}}}))
    bench.secrets = secrets_of(WEATHER_API_KEY=KEY)
    call = http_call(
        url=site.url("/v1/current.json?q=${city}&key=${WEATHER_API_KEY}"),
        headers={"User-Agent": "MyApp/${version}"},
        success=frozenset({200}),
        timeout_ms=10_000,
        extract="$.current.condition.text",
    )
    outcome = await bench.run(bench.tool(call, parameters=CITY), city="São Paulo")
    assert outcome.value == "Sunny"
    assert site.targets == ["GET /v1/current.json?q=S%C3%A3o%20Paulo&key=sk-4f%2F9%2Ba%20B%25"]
    assert site.header("User-Agent") == "MyApp/7.8.9"
    assert outcome.meta == {
        "origin": f"http://{site.endpoint}",
        "attempts": 1,
        "status": 200,
        "contentType": "application/json",
    }


@pytest.mark.spec("S1-27")
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])
async def test_the_method_is_the_verb(bench, serve, answer, method):
    site = await serve(answer(b"" if method == "HEAD" else b"1"))
    await bench.value(http_call(url=site.url("/x"), method=method))
    assert site.targets == [f"{method} /x"]


@pytest.mark.spec("S1-30")
async def test_a_json_body_is_sent_with_values_of_their_own_type(bench, serve, answer):
    site = await serve(answer(b"1"))
    call = http_call(url=site.url(), method="POST", body='{"n": "${n}", "s": "to ${name}", "l": ${l}}')
    await bench.value(call, n=5, name='"A"', l=[1, {"a": None}])
    assert json.loads(site.body()) == {"n": 5, "s": 'to "A"', "l": [1, {"a": None}]}
    assert site.header("Content-Type") == "application/json"


async def test_values_are_looked_for_in_a_fixed_order(bench, serve, answer, secrets_of):
    """A parameter, then the platform, then a secret; the answer of a call before all of them."""
    site = await serve(answer({"slug": "from the call"}))
    bench.secrets = secrets_of(KEY="from the secret", slug="never", tool_id="never")
    parameters = {"type": "object", "properties": {"version": {"type": "string"}}}
    calls = (
        http_call(name="slug", url=site.url("/?v=${version}&t=${tool_id}&k=${KEY}")),
        http_call(url=site.url("/${slug.slug}")),
    )
    await bench.run(bench.tool(*calls, parameters=parameters), version="given", KEY="given", tool_id="given")
    assert site.targets == ["GET /?v=given&t=sample&k=from%20the%20secret", "GET /from%20the%20call"]


async def test_no_argument_stands_for_a_secret_that_is_missing(bench, serve, answer):
    site = await serve(answer(b"1"))
    open_to_all = {"type": "object", "properties": {"city": {"type": "string"}}}
    call = http_call(url=site.url("/?q=${city}&key=${API_KEY}"))
    with pytest.raises(ToolError, match=r"\$\{API_KEY\} is neither a parameter"):
        await bench.run(bench.tool(call, parameters=open_to_all), city="Oslo", API_KEY="mine")
    assert site.targets == []


async def test_a_tool_that_declares_no_parameter_takes_what_is_given(bench, serve, answer):
    site = await serve(answer(b"1"))
    call = http_call(url=site.url("/?q=${city}"))
    await bench.run(bench.tool(call, parameters={"type": "object"}), city="Oslo")
    assert site.targets == ["GET /?q=Oslo"]


async def test_the_platform_gives_its_names(bench, serve, answer):
    site = await serve(answer(b"1"))
    names = sorted(PLATFORM - {"now"})
    tool = bench.tool(
        http_call(url=site.url("/"), query={name: f"${{{name}}}" for name in [*names, "now"]}),
        id="018faf50-b7b6-7a01-9a05-a22a6e0af101",
        version="2.0.0",
        bundle="weather",
    )
    await bench.run(tool)
    target, _, now = site.targets[0].rpartition("&now=")
    assert target == (
        "GET /?bundle_id=weather&client_id=ann&request_id=call-1&slug=sample"
        "&tool_id=018faf50-b7b6-7a01-9a05-a22a6e0af101&tool_version=2.0.0&version=7.8.9"
    )
    assert now.endswith("Z")


@pytest.mark.spec("S1-38")
@pytest.mark.parametrize(
    "parts",
    [
        {"url": "/${nope}"},
        {"url": "/", "query": {"q": "${nope}"}},
        {"url": "/", "headers": {"X-A": "${nope.x}"}},
        {"url": "/", "method": "POST", "body": "${nope}"},
    ],
)
async def test_an_unknown_name_is_refused_and_nothing_is_sent(bench, serve, answer, parts):
    site = await serve(answer(b"1"))
    call = http_call(**{**parts, "url": site.url(parts["url"])})
    with pytest.raises(ToolError, match=r"is neither a parameter, a name of the platform nor a secret") as refusal:
        bench.check(bench.tool(call))
    assert refusal.value.kind is Kind.VALIDATION
    assert refusal.value.details == {"name": "nope"}
    assert site.connections == 0


@pytest.mark.spec("S1-38")
async def test_a_missing_optional_argument_is_left_out_of_the_query_map_and_named_elsewhere(bench, serve, answer):
    site = await serve(answer(b"1"))
    await bench.run(bench.tool(http_call(url=site.url("/x"), query={"q": "${city}"}), parameters=CITY))
    assert site.targets == ["GET /x"]
    with pytest.raises(ToolError, match=r"^url: \$\{city\} has no value; give city, or give the parameter a default$"):
        bench.check(bench.tool(site.url("/?q=${city}"), parameters=CITY))
    with pytest.raises(ToolError, match=r"^headers.X-A: \$\{user.name\} has no value"):
        bench.check(bench.tool(http_call(url=site.url(), headers={"X-A": "${user.name}"}), parameters=CITY), user={})
    assert len(site.requests) == 1


@pytest.mark.spec("S1-39")
async def test_a_parameter_with_the_name_of_a_secret_is_refused_at_the_call(bench, serve, answer, secrets_of):
    site = await serve(answer(b"1"))
    tool = bench.tool(site.url("/?q=${city}"), parameters=CITY)
    await bench.run(tool, city="Oslo")
    bench.secrets = secrets_of(city="s3cret-value")
    with pytest.raises(
        ToolError, match="city is a parameter and the name of a secret; rename the parameter"
    ) as refusal:
        bench.check(tool, city="Oslo")
    assert refusal.value.kind is Kind.VALIDATION
    assert len(site.requests) == 1


@pytest.mark.spec("S1-29")
@pytest.mark.parametrize("value", ["a\r\nEvil: 1", "a\nb", "a\rb", "a\0b", "a\x1bb", "a\x7fb", "a\u2028b", "\u0085"])
async def test_a_value_that_would_end_a_header_is_refused_and_not_repeated(bench, serve, answer, value):
    site = await serve(answer(b"1"))
    with pytest.raises(ToolError, match="the value holds a line break or another control character") as refusal:
        bench.check(bench.tool(http_call(url=site.url(), headers={"X-A": "${x}"})), x=value)
    assert refusal.value.kind is Kind.VALIDATION
    assert "Evil" not in str(refusal.value.to_json())
    assert site.connections == 0


async def test_a_secret_that_would_end_a_header_is_refused_too(bench, serve, answer, secrets_of):
    site = await serve(answer(b"1"))
    bench.secrets = secrets_of(KEY="a-long-key\r\nEvil: 1")
    with pytest.raises(ToolError, match="control character") as refusal:
        bench.check(bench.tool(http_call(url=site.url(), headers={"X-A": "${KEY}"})))
    assert "a-long-key" not in str(refusal.value.to_json())


@pytest.mark.spec("S1-40")
async def test_a_host_that_is_not_allowed_is_refused_with_the_cure(bench, serve, answer):
    site = await serve(answer(b"1"))
    bench.hosts = ["api.example.com", "*.example.org"]
    with pytest.raises(ToolError) as refusal:
        bench.check(bench.tool(site.url("/?k=1")))
    assert refusal.value.kind is Kind.HOST_NOT_ALLOWED
    assert refusal.value.details["host"] == "127.0.0.1"
    assert refusal.value.details["port"] == site.port
    assert refusal.value.details["allowed"] == ["api.example.com", "*.example.org"]
    assert refusal.value.details["cure"] == f'add "{site.endpoint}" to the setting http_tools.hosts'
    assert site.connections == 0


@pytest.mark.spec("S1-40")
async def test_an_empty_list_allows_nothing(bench, serve, answer):
    site = await serve(answer(b"1"))
    bench.hosts = []
    with pytest.raises(ToolError, match=r"is not among the allowed hosts \(none\)"):
        bench.check(bench.tool(site.url()))


async def test_a_private_address_is_refused_although_its_host_is_allowed(bench, serve, answer):
    site = await serve(answer(b"1"))
    bench.private = []
    with pytest.raises(ToolError, match=r"lies in 127.0.0.0/8 \(loopback\)") as refusal:
        bench.check(bench.tool(site.url()))
    assert refusal.value.kind is Kind.HOST_NOT_ALLOWED


@pytest.mark.spec("S1-104")
@pytest.mark.parametrize(
    ("pattern", "url", "allowed"),
    [
        ("API.Example.com", "https://api.example.com/x", True),
        ("bücher.example", "https://xn--bcher-kva.example/", True),
        ("bücher.example", "https://BÜCHER.example/", True),
        ("*.example.com", "https://a.b.example.com/", True),
        ("*.example.com", "https://example.com/", False),
        ("*.example.com", "https://notexample.com/", False),
        ("example.com:8443", "https://example.com:8443/", True),
        ("example.com:8443", "https://example.com/", False),
        ("example.com", "http://example.com/", True),
        ("example.com", "https://example.com:8443/", False),
        ("example.com", "https://example.com.evil.example/", False),
    ],
)
async def test_hosts_are_matched_exactly_or_below(bench, pattern, url, allowed):
    bench.hosts = [pattern]
    if allowed:
        bench.check(bench.tool(url))
    else:
        with pytest.raises(ToolError, match="is not among the allowed hosts"):
            bench.check(bench.tool(url))


@pytest.mark.spec("S1-88")
@pytest.mark.parametrize(
    "parts",
    [
        {"url": "/", "method": "POST", "body": "${x}", "headers": {"Content-Type": "text/plain"}},
        {"url": "/", "headers": {"X-A": "${x}"}},
    ],
)
async def test_a_request_that_is_too_large_is_refused_and_nothing_is_sent(bench, serve, answer, parts):
    site = await serve(answer(b"1"))
    bench.limits = {"max_sent_bytes": 1_000}
    tool = bench.tool(http_call(**{**parts, "url": site.url()}))
    with pytest.raises(ToolError, match="and the limit is 1000; send less") as refusal:
        bench.check(tool, x="y" * 1_000)
    assert refusal.value.kind is Kind.LIMIT_EXCEEDED
    assert refusal.value.details["limit"] == 1_000
    await bench.run(tool, x="y" * 900)
    assert len(site.requests) == 1


async def test_the_url_counts_as_sent(bench, serve, answer):
    site = await serve(answer(b"1"))
    bench.limits = {"max_sent_bytes": 100}
    with pytest.raises(ToolError, match="and the limit is 100"):
        bench.check(bench.tool(site.url("/?q=${x}")), x="y" * 100)


def test_a_tool_with_problems_is_not_made_ready(bench):
    with pytest.raises(ToolError, match="sample: url: must begin with http") as refusal:
        bench.runner().bind(bench.tool(http_call(url="ftp://x", headers={"Host": "x"})))
    assert len(refusal.value.details["problems"]) == 2
