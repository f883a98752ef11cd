"""Two spellings, one tool: a document of a bundle and a script send the same requests under the same rules."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sample_tools import http_call, http_run
from toolcrib import Call, Kind, Tool, ToolError
from toolcrib.features.bundles.format import read_tool
from toolcrib.features.http_tools.request_check import check_http
from toolcrib.features.scripts.format import ScriptFile
from toolcrib.features.scripts.http_config import read_config
from toolcrib.lib.document_fields import Report

EXAMPLES = Path(__file__).parents[3] / "examples/http"
BUNDLE_ID = "018faf50-b7b6-7a01-9a05-a22a6e0af101"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False}
EXPLICIT = "/v1/${arg:city}?key=${secret:KEY}&in=${env:REGION:-eu}"


def document(impl, parameters=CITY):
    return {
        "schemaVersion": "toolcrib-1",
        "displayName": "Weather",
        "description": "Fetch the weather",
        "type": "http",
        "isEnabled": True,
        "argSchema": parameters,
        "outputSchema": {},
        "impl": impl,
    }


def of_bundle(impl, parameters=CITY, secrets=()):
    return read_tool(document(impl, parameters), bundle_id=BUNDLE_ID, slug="weather", version="v1", secrets=secrets)


def of_script(config, parameters=CITY, hosts=None):
    """A tool whose run is what the config of a script describes."""
    report = Report()
    http = read_config(report, config, parameters)
    report.raise_problems()
    http = replace(http, hosts=hosts)
    return Tool(name="weather", description="A sample.", parameters=parameters, run=http)


class Bound:
    """Both spellings of one tool, bound to one runner; `granted` are the variables that the tool may see."""

    def __init__(self, bench, *, granted=(), environment=None):
        self.bench = bench
        self.granted = granted
        self.environment = environment or {}

    def variable(self, tool, name):
        if name not in self.granted:
            return None
        secret = self.bench.secrets.get(name)
        return self.environment.get(name) or ("" if secret is None else secret.reveal())

    async def run(self, tool, **arguments):
        self.bench.limits |= {"variable": self.variable, "environment": self.environment}
        return await self.bench.run(tool, **arguments)


@pytest.fixture
def bound(bench):
    return lambda **facts: Bound(bench, **facts)


def test_the_examples_of_the_page_describe_the_same_request():
    (script,) = ScriptFile(EXAMPLES / ".ai/tools").read(
        path := EXAMPLES / ".ai/tools/weather/weather_report.yaml", path.read_bytes()
    )
    stored = read_tool(
        json.loads((EXAMPLES / "weather.json").read_text()), bundle_id=BUNDLE_ID, slug="weather", version="v1"
    )
    report = Report()
    (described,) = read_config(report, script.run.config, script.parameters).calls
    (documented,) = stored.tool.run.calls
    assert (report.problems, script.warnings, stored.warnings) == ([], (), ())
    for part in ("method", "success", "encoding", "extract", "error_mode"):
        assert getattr(described, part) == getattr(documented, part)
    explicit = documented.url.replace("${city}", "${arg:city}").replace("${WEATHER", "${secret:WEATHER")
    assert described.url == explicit
    assert (script.output_schema, script.parameters) == (stored.tool.output_schema, stored.tool.parameters)


async def test_explicit_slots_mean_the_same_in_both(bound, bench, serve, answer, secrets_of):
    site = await serve(answer({"ok": True}))
    bench.secrets = secrets_of(KEY="s3cret-value")
    headers = {"X-Id": "${platform:slug}/${platform:version}", "X-Who": "${platform:client_id}"}
    both = bound(granted=("KEY", "REGION"), environment={"REGION": "us/1"})
    for tool in (
        of_bundle({"urlTemplate": site.url(EXPLICIT), "headers": headers}).tool,
        of_script({"url": site.url(EXPLICIT), "headers": headers}),
    ):
        outcome = await both.run(tool, city="Bad Aibling")
        assert (outcome.error, outcome.value) == (None, {"ok": True})
    assert site.targets == ["GET /v1/Bad%20Aibling?key=s3cret-value&in=us%2F1"] * 2
    assert [site.header("x-id", index) for index in (0, 1)] == ["weather/7.8.9"] * 2
    assert site.header("x-who") == "ann"


async def test_a_default_counts_where_a_variable_is_not_set(bound, serve, answer, bench, secrets_of):
    site = await serve(answer(1))
    bench.secrets = secrets_of(REGION="s3cret-value")
    for tool in (
        of_bundle({"urlTemplate": site.url("/?in=${env:REGION:-eu}")}).tool,
        of_script({"url": site.url("/?in=${env:REGION:-eu}")}),
    ):
        # The secret of that name is granted, too, and is not a variable.
        await bound(granted=("REGION",)).run(tool)
    assert site.targets == ["GET /?in=eu"] * 2


async def test_a_variable_needs_a_grant_in_both(bound, bench, serve, answer, secrets_of):
    site = await serve(answer(1))
    bench.secrets = secrets_of(KEY="s3cret-value")
    refused = bound(environment={"HOME": "/root"})
    for make, url in ((of_bundle, "urlTemplate"), (of_script, "url")):
        tool = getattr(made := make({url: site.url("/${env:HOME}")}), "tool", made)
        with pytest.raises(ToolError, match="asks for the host's variable HOME, which is not granted") as caught:
            await refused.run(tool)
        assert caught.value.kind is Kind.CAPABILITY_MISSING
    # The hosts are the wall of a bundle's tool, and a script needs its secrets granted.
    await refused.run(of_bundle({"urlTemplate": site.url("/${secret:KEY}")}).tool)
    with pytest.raises(ToolError) as caught:
        await refused.run(of_script({"url": site.url("/${secret:KEY}")}))
    assert (caught.value.kind, len(site.requests)) == (Kind.CAPABILITY_MISSING, 1)


@pytest.mark.parametrize("slot", ["${secret:NONE}", "${env:NONE}"])
async def test_what_is_not_there_is_refused_with_its_name(bound, serve, answer, slot):
    site = await serve(answer(1))
    for tool in (of_bundle({"urlTemplate": site.url(f"/{slot}")}).tool, of_script({"url": site.url(f"/{slot}")})):
        with pytest.raises(ToolError, match="NONE") as caught:
            await bound(granted=("NONE",)).run(tool)
        assert caught.value.kind is Kind.VALIDATION
    assert site.requests == []


async def test_a_script_of_several_requests_uses_earlier_answers(bound, serve, answer):
    site = await serve([answer({"id": "a/1"}), answer({"place": "Oslo"})])
    calls = [
        {"name": "order", "method": "POST", "url": site.url("/orders"), "body": {"what": "{city}", "n": 2}},
        {"name": "parcel", "url": site.url("/parcels/${answer:order.id}"), "extract": "$.place"},
    ]
    outcome = await bound().run(of_script({"calls": calls}), city="book")
    assert outcome.value == "Oslo"
    assert site.targets == ["POST /orders", "GET /parcels/a%2F1"]
    assert json.loads(site.body(0)) == {"what": "book", "n": 2}


class TestHosts:
    async def test_the_operators_list_bounds_a_script(self, bench, serve, answer):
        site, other = await serve(answer(1)), await serve(answer(2))
        bench.hosts = [site.endpoint]
        assert (await bench.run(of_script({"url": site.url()}))).value == 1
        with pytest.raises(ToolError, match="is not among the allowed hosts") as caught:
            bench.check(of_script({"url": other.url()}))
        assert caught.value.details["cure"].endswith("to the setting http_tools.hosts")

    async def test_without_any_list_a_script_is_open_and_a_bundle_is_closed(self, bench, serve, answer):
        site = await serve(answer(1))
        bench.hosts = []
        assert (await bench.run(of_script({"url": site.url()}))).value == 1
        with pytest.raises(ToolError) as caught:
            bench.check(of_bundle({"urlTemplate": site.url()}).tool)
        assert caught.value.kind is Kind.HOST_NOT_ALLOWED

    async def test_a_tools_own_list_narrows_and_never_opens(self, bench, serve, answer):
        site, other = await serve(answer(1)), await serve(answer(2))
        for tool in (
            of_bundle({"urlTemplate": other.url(), "hosts": [site.endpoint]}).tool,
            of_script({"url": other.url()}, hosts=(site.endpoint,)),
        ):
            with pytest.raises(ToolError, match="to the hosts of the tool"):
                bench.check(tool)
        bench.hosts = []
        with pytest.raises(ToolError, match=r"http_tools\.hosts"):
            bench.check(of_bundle({"urlTemplate": site.url(), "hosts": [site.endpoint]}).tool)

    def test_a_list_that_cannot_be_is_refused_at_its_place(self):
        with pytest.raises(ToolError, match=r"impl\.hosts\[0\]: host pattern '\*' is refused"):
            of_bundle({"urlTemplate": "https://x.example/", "hosts": ["*"]})


class TestSlips:
    """A slot that nothing fills is found before any call, with its place and what may be meant."""

    @pytest.mark.parametrize(
        ("config", "place", "words"),
        [
            (
                {"url": "https://x.example/{cty}"},
                9,
                "config.url: {cty} is neither a parameter nor a name of the platform; ",
            ),
            (
                {"url": "https://x.example/${arg:cty}"},
                9,
                "config.url: ${arg:cty} is not a parameter; did you mean city?",
            ),
            (
                {"url": "https://x.example/", "headers": {"X": "${platform:verison}"}},
                10,
                "config.headers.X: ${platform:verison} is not a name of the platform; did you mean version?",
            ),
            ({"url": "https://x.example/", "body": {"a": ["{cit}"]}}, 10, "config.body: {cit} is neither"),
            ({"url": "https://x.example/${arg:}"}, 9, "config.url: '${arg:}' opens no slot; "),
            (
                {"url": "https://x.example/", "exract": "$.a"},
                10,
                "config.exract: is unknown to http_client; did you mean extract?",
            ),
            ({"url": "https://x.example/", "extract": "$.["}, 10, "config.extract: is not a JSONPath"),
        ],
    )
    def test_a_script_is_refused_with_file_and_line(self, tmp_path, config, place, words):
        path = tmp_path / "api/get_weather.yaml"
        lines = [f"  {name}: {json.dumps(value)}" for name, value in config.items()]
        head = ["tool_id: get-weather", "tool_type: http", 'version: "1.0.0"', "category: api", "description: Get it"]
        tail = ["parameters:", "  - {name: city, type: string, required: true, description: Where.}"]
        text = "\n".join([*head, "executor_id: http_client", "requires: [net.http]", "config:", *lines, *tail])
        with pytest.raises(ToolError) as caught:
            ScriptFile(tmp_path).read(path, text.encode())
        assert caught.value.message.startswith(f"{path}:{place}: {words}")

    def test_an_open_schema_leaves_names_to_the_call(self):
        assert of_script({"url": "https://x.example/{anything}"}, {"type": "object"}).run.spelling == "braces"

    def test_a_document_is_refused_for_what_can_never_be_filled(self):
        with pytest.raises(ToolError) as caught:
            of_bundle({"urlTemplate": "https://x.example/${arg:cty}?v=${platform:x}"})
        names = "bundle_id, client_id, now, request_id, slug, tool_id, tool_version, version"
        assert caught.value.details["problems"] == [
            "impl.urlTemplate: ${arg:cty} is not a parameter; did you mean city?",
            f"impl.urlTemplate: ${{platform:x}} is not a name of the platform; write one of {names}",
        ]

    def test_a_bare_name_that_looks_like_a_parameter_is_warned_of(self):
        impl = {"urlTemplate": "https://x.example/${cty}/${WEATHER_API_KEY}/${verison}"}
        warned = "impl.urlTemplate: ${{{0}}} is not a parameter, so it means a secret; did you mean {1}? Write ${{secret:{0}}} if it is a secret"
        assert of_bundle(impl).warnings == (warned.format("cty", "city"), warned.format("verison", "version"))
        assert of_bundle(impl, secrets=["cty"]).warnings == (warned.format("verison", "version"),)
        assert of_bundle({"urlTemplate": "https://x.example/${secret:cty}"}).warnings == ()

    def test_the_answer_of_a_call_that_does_not_exist_is_a_problem(self):
        call = http_call(url="https://x.example/${answer:ordr}")
        others = (http_call(name="order", url="https://x.example/"), call)
        assert check_http(http_run(*others), {}) == [
            "calls[1].url: ${answer:ordr} is the name of no call; did you mean order?"
        ]


def test_a_question_about_a_call_does_not_send_it(bench):
    tool = of_script({"url": "https://x.example/{request_id}"})
    bench.hosts = ["x.example"]
    assert bench.runner().bind(tool).check({}, Call(name="weather")) is None
