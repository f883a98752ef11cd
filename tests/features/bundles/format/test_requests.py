"""The requests of a tool: one or several, each key of them, and what is refused before anything is stored."""

import pytest

from sample_tools import http_call, http_run
from toolcrib import RetryPolicy

URL = "https://api.example.com/now?q=${city}"


def a_call(name="first", **keys) -> dict:
    return {"name": name, "urlTemplate": URL} | keys


def test_a_request_is_a_get_that_gives_json_in_ten_seconds_unless_it_says_otherwise(read):
    assert read(impl={"urlTemplate": URL}).tool.run == http_run(http_call(url=URL))
    assert http_call(url=URL).timeout_ms == 10_000


def test_every_key_of_a_request_is_read(read):
    impl = {
        "method": "POST",
        "urlTemplate": URL,
        "query": {"units": "metric", "day": "${city}"},
        "headers": {"Accept": "text/plain", "X-City": "${city}"},
        "bodyTemplate": '{"city": "${city}"}',
        "successCodes": [200, 201],
        "timeoutMs": 500,
        "responseEncoding": "text",
        "extractExpr": "now: (.*)",
        "errorMode": "empty",
        "retry": {"max_attempts": 3, "backoff_type": "linear", "initial_delay": 0.5, "max_delay": 2},
        "model": "m-1",
    }
    reading = read(impl=impl)
    request = http_call(
        url=URL,
        method="POST",
        query={"units": "metric", "day": "${city}"},
        headers={"Accept": "text/plain", "X-City": "${city}"},
        body='{"city": "${city}"}',
        success=frozenset({200, 201}),
        timeout_ms=500,
        encoding="text",
        extract="now: (.*)",
        error_mode="empty",
        retry=RetryPolicy(max_attempts=3, backoff="linear", initial_delay=0.5, max_delay=2, multiplier=2),
    )
    assert reading.tool.run == http_run(request, model="m-1")
    assert reading.warnings == ()
    assert reading.document["impl"] == impl


@pytest.mark.spec("S1-27")
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_the_verbs_of_http_are_taken(read, method):
    assert read(impl={"urlTemplate": URL, "method": method}).tool.run.calls[0].method == method


@pytest.mark.spec("S1-27")
@pytest.mark.parametrize("method", ["FOO", "get", "TRACE", "CONNECT", "", "GET ", None, 1, ["GET"]])
def test_another_verb_is_refused_by_naming_those_that_there_are(request_problems, method):
    [problem] = request_problems(method=method)
    assert problem.startswith("impl.method: ")
    assert '"GET" or "HEAD" or "POST" or "PUT" or "PATCH" or "DELETE" or "OPTIONS"' in problem


@pytest.mark.spec("S1-37")
@pytest.mark.parametrize(
    "url",
    [
        "ftp://x.example",
        "file:///etc/passwd",
        "${u}/x",
        "api.example.com/now",
        "",
        " https://x.example",
        "//x.example",
        "https:/x.example",
        "httpss://x.example",
        "javascript:1",
        "https://",
        "https://${host}/x",
        "https://x.example:${port}/",
        "${scheme}://x.example",
        "https://a@x.example/",
        "https://x.${tld}/",
        "https://x.example${path}",
        "https://x .example/",
        "https://x.example/${",
        "https://x.example/${}",
        "https://x.example/${a b}",
    ],
)
def test_a_url_that_is_not_http_or_leaves_open_where_it_leads_is_refused(request_problems, url):
    [problem] = request_problems(urlTemplate=url)
    assert problem.startswith("impl.urlTemplate: ")


@pytest.mark.spec("S1-37")
@pytest.mark.parametrize(
    "url", ["http://x.example", "https://x.example/${city}/a?b=${city}", "HTTPS://x.example:8443/"]
)
def test_a_url_of_http_is_taken(read, url):
    assert read(impl={"urlTemplate": url}).tool.run.calls[0].url == url


def test_a_request_without_a_url_is_refused(request_problems):
    assert request_problems(urlTemplate=...) == ['impl: urlTemplate is missing; write "urlTemplate": "https://…"']


@pytest.mark.spec("S1-31")
@pytest.mark.parametrize("code", [99, 600, 0, -200, 2000, "200", 200.0, True, None, [200]])
def test_a_status_that_is_none_is_refused(request_problems, code):
    [problem] = request_problems(successCodes=[200, code])
    assert problem.startswith("impl.successCodes[1]: ")
    assert problem.endswith("is not a status; write an integer from 100 to 599")


@pytest.mark.spec("S1-31")
def test_no_status_is_any_that_means_success(read):
    assert read(impl={"urlTemplate": URL, "successCodes": []}).tool.run.calls[0].success == frozenset()
    codes = read(impl={"urlTemplate": URL, "successCodes": [100, 599, 599]}).tool.run.calls[0].success
    assert codes == {100, 599}


@pytest.mark.spec("S1-27", "S1-32", "S1-33", "S1-101")
def test_what_a_request_leaves_out_is_its_default(read):
    call = read(impl={"urlTemplate": URL}).tool.run.calls[0]
    assert (call.method, call.timeout_ms, call.encoding, call.extract) == ("GET", 10_000, "json", "")


@pytest.mark.spec("S1-32")
@pytest.mark.parametrize("timeout", [0, -1, 1.5, "10", True, None, 3_600_001, 2**63])
def test_a_time_limit_that_is_none_is_refused(request_problems, timeout):
    [problem] = request_problems(timeoutMs=timeout)
    assert problem.startswith("impl.timeoutMs: must be an integer from 1 to 3600000, not ")


@pytest.mark.spec("S1-33", "S1-36")
@pytest.mark.parametrize(
    ("name", "choices"),
    [("responseEncoding", '"json" or "text" or "events" or "lines"'), ("errorMode", '"fail" or "empty"')],
)
@pytest.mark.parametrize("word", ["xml", "JSON", "", None, 1, {}])
def test_another_word_is_refused_by_naming_the_known_ones(request_problems, name, choices, word):
    [problem] = request_problems(**{name: word})
    assert problem.startswith(f"impl.{name}: ")
    assert problem.endswith(f"is unknown; write {choices}")


@pytest.mark.spec("S1-34", "S1-35")
@pytest.mark.parametrize("expression", ["$.a[", "$..", "$.a[?(@.b", "(", "a**", "[z-a]", "(?=x)", r"(a)\1"])
@pytest.mark.parametrize("encoding", ["json", "text"])
def test_an_expression_that_cannot_be_read_is_refused(request_problems, expression, encoding):
    told = request_problems(extractExpr=expression, responseEncoding=encoding)
    assert told[0].startswith("impl.extractExpr: ")


@pytest.mark.spec("S1-101")
@pytest.mark.parametrize("expression", ["$", "$.a", "$[0]"])
def test_a_json_path_does_not_look_into_text(request_problems, read, expression):
    [problem] = request_problems(extractExpr=expression, responseEncoding="text")
    assert problem.startswith("impl.extractExpr: ")
    impl = {"urlTemplate": URL, "extractExpr": expression, "responseEncoding": "json"}
    assert read(impl=impl).tool.run.calls[0].extract == expression


@pytest.mark.spec("S1-101")
def test_an_expression_that_only_begins_like_a_json_path_is_a_pattern(read):
    impl = {"urlTemplate": URL, "extractExpr": "$x|[0-9]+", "responseEncoding": "text"}
    assert read(impl=impl).tool.run.calls[0].extract == "$x|[0-9]+"


@pytest.mark.parametrize("name", ["urlTemplate", "bodyTemplate", "extractExpr"])
@pytest.mark.parametrize("value", [None, 1, {"a": 1}, ["x"]])
def test_a_template_that_is_no_text_is_refused(request_problems, name, value):
    [problem] = request_problems(**{name: value})
    assert problem.startswith(f"impl.{name}: must be text, not ")


@pytest.mark.parametrize("name", ["query", "headers"])
def test_fields_and_headers_are_text_by_name(request_problems, name):
    [problem] = request_problems(**{name: ["a"]})
    assert problem.startswith(f"impl.{name}: must be an object, not ")
    [problem] = request_problems(**{name: {"X-A": 5}})
    assert problem == f"impl.{name}.X-A: must be text, not 5; write it in quotes"
    [problem] = request_problems(**{name: {f"X-{number}": "" for number in range(101)}})
    assert problem == f"impl.{name}: has 101 keys, the limit is 100; leave some out"


@pytest.mark.parametrize(
    "headers",
    [
        {"A B": "x"},
        {"": "x"},
        {"A": "x\r\nB: y"},
        {"A": "x\0"},
        {"Host": "x"},
        {"Content-Length": "1"},
        {"${city}": "x"},
    ],
)
def test_headers_that_would_break_a_request_are_refused(request_problems, headers):
    [problem] = request_problems(headers=headers)
    assert problem.startswith("impl.headers.")


def test_a_retry_policy_has_the_five_fields_that_scripts_have(read, problems):
    policy = {
        "max_attempts": 5,
        "backoff_type": "constant",
        "initial_delay": 0,
        "max_delay": 1.5,
        "backoff_multiplier": 3,
    }
    written = RetryPolicy(max_attempts=5, backoff="constant", initial_delay=0, max_delay=1.5, multiplier=3)
    assert read(impl={"urlTemplate": URL, "retry": policy}).tool.run.calls[0].retry == written
    [warning] = read(impl={"urlTemplate": URL, "retry": {"max_attempts": 2, "backof_type": "linear"}}).warnings
    assert warning == "impl.retry.backof_type: is not read; did you mean backoff_type?"


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({}, "impl.retry: max_attempts is missing"),
        ({"max_attempts": 0}, "impl.retry.max_attempts: must be an integer from 1 to 100"),
        ({"max_attempts": True}, "impl.retry.max_attempts: must be an integer"),
        ({"max_attempts": 2, "backoff_type": "wild"}, "impl.retry.backoff_type: "),
        ({"max_attempts": 2, "initial_delay": -1}, "impl.retry.initial_delay: must be a number from 0 to 3600"),
        ({"max_attempts": 2, "max_delay": "1"}, "impl.retry.max_delay: must be a number"),
        ({"max_attempts": 2, "backoff_multiplier": 1e308}, "impl.retry.backoff_multiplier: must be a number"),
        (None, "impl.retry: must be an object, not null"),
    ],
)
def test_a_retry_policy_that_cannot_be_kept_is_refused(request_problems, policy, words):
    [problem] = request_problems(retry=policy)
    assert problem.startswith(words)


@pytest.mark.spec("S1-11")
def test_several_calls_are_read_in_their_order(read):
    calls = [
        a_call("find", timeoutMs=400),
        a_call("show", urlTemplate="https://api.example.com/${find.id}", method="DELETE", timeoutMs=700),
    ]
    tool = read(impl={"calls": calls, "model": "m"}).tool
    assert tool.run == http_run(
        http_call(name="find", url=URL, timeout_ms=400),
        http_call(name="show", url="https://api.example.com/${find.id}", method="DELETE", timeout_ms=700),
        model="m",
    )
    assert tool.limits.timeout_ms == 1_100


@pytest.mark.spec("S1-102")
@pytest.mark.parametrize("name", ["urlTemplate", "method", "headers", "timeoutMs"])
def test_calls_and_a_request_beside_them_are_refused(problems, name):
    written = {"urlTemplate": URL, "method": "GET", "headers": {}, "timeoutMs": 5}
    [problem] = problems(impl={"calls": [a_call()], name: written[name]})
    assert problem == f"impl.{name}: stands beside calls; write it into each of the calls"


@pytest.mark.spec("S1-102")
@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([], "impl.calls: holds no call"),
        ({}, "impl.calls: must be a list, not {}"),
        ([a_call(f"c{number}") for number in range(17)], "impl.calls: has 17 items, the limit is 16"),
        ([5], "impl.calls[0]: must be an object, not 5"),
        ([{"urlTemplate": URL}], "impl.calls[0]: name is missing"),
        ([{"name": "a"}], "impl.calls[0]: urlTemplate is missing"),
        ([a_call("a b")], 'impl.calls[0].name: "a b" is not a name'),
        ([a_call("1a")], 'impl.calls[0].name: "1a" is not a name'),
        ([a_call("")], 'impl.calls[0].name: "" is not a name'),
        ([a_call("x" * 65)], "impl.calls[0].name: "),
        ([a_call(5)], "impl.calls[0].name: must be text, not 5"),
        ([a_call("a"), a_call("a")], 'impl.calls[1].name: "a" is the name of an earlier call; choose another one'),
        ([a_call("city")], 'impl.calls[0].name: "city" is the name of an argument; choose another one'),
        ([a_call("a"), a_call("b", urlTemplate="ftp://x.example")], "impl.calls[1].urlTemplate: "),
        ([a_call("a", extractExpr="(")], "impl.calls[0].extractExpr: "),
        ([a_call("a", method="FOO")], "impl.calls[0].method: "),
        ([a_call("a", goFunc="f")], "impl.calls[0].goFunc: does not belong into a call; remove it"),
        ([a_call("a", calls=[])], "impl.calls[0].calls: does not belong into a call; remove it"),
        (
            [a_call("a", urlTemplate="https://x.example/${b.id}"), a_call("b")],
            "impl.calls[0].urlTemplate: ${b.id} asks",
        ),
    ],
)
def test_calls_that_cannot_be_made_are_refused_at_their_place(problems, calls, words):
    [problem] = problems(impl={"calls": calls})
    assert problem.startswith(words)


def test_keys_that_are_not_read_are_told_at_their_place(read):
    calls = [a_call("a", urlTemplat="x", proxy={})]
    assert read(impl={"calls": calls, "modl": "m"}).warnings == (
        "impl.modl: is not read; did you mean model?",
        "impl.calls[0].urlTemplat: is not read; did you mean urlTemplate?",
        "impl.calls[0].proxy: is kept and not read",
    )
