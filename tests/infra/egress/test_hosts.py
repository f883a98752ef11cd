import pytest

from toolcrib import Kind, ToolError
from toolcrib.lib.http_syntax import parse_hosts, parse_url


def allows(pattern, url):
    refusals = []
    try:
        parse_hosts([pattern]).check(parse_url(url))
    except ToolError as error:
        refusals.append(error.kind)
    return refusals != [Kind.HOST_NOT_ALLOWED]


@pytest.mark.parametrize(
    ("pattern", "url", "allowed"),
    [
        ("api.example.com", "https://api.example.com/", True),
        ("API.Example.COM", "https://api.example.com/", True),
        ("api.example.com", "https://API.example.com/", True),
        ("api.example.com", "http://api.example.com/", True),
        ("api.example.com", "https://api.example.com:8443/", False),
        ("*.example.com", "https://a.example.com:8443/", False),
        ("api.example.com", "https://v2.api.example.com/", False),
        ("api.example.com", "https://example.com/", False),
        ("api.example.com", "https://api.example.com.evil.com/", False),
        ("api.example.com", "https://evilapi.example.com/", False),
        ("bücher.example", "https://xn--bcher-kva.example/", True),
        ("xn--bcher-kva.example", "https://BÜCHER.example/", True),
        ("*.example.com", "https://api.example.com/", True),
        ("*.Example.com", "https://a.b.example.com/", True),
        ("*.example.com", "https://example.com/", False),
        ("*.example.com", "https://evilexample.com/", False),
        ("*.example.com", "https://example.com.evil.com/", False),
        ("example.com:8443", "https://example.com:8443/", True),
        ("example.com:8443", "https://example.com/", False),
        ("example.com:443", "https://example.com/", True),
        ("example.com:443", "http://example.com/", False),
        ("*.example.com:8443", "https://a.example.com:8443/", True),
        ("*.example.com:8443", "https://a.example.com/", False),
        ("93.184.216.34", "http://93.184.216.34/", True),
        ("[2606:4700::1]:81", "http://[2606:4700:0::1]:81/", True),
        ("[2606:4700::1]", "http://[2606:4700::2]/", False),
    ],
)
def test_a_pattern_means_one_host_or_what_lies_below_it(pattern, url, allowed):
    assert allows(pattern, url) is allowed


def test_an_empty_list_allows_nothing():
    with pytest.raises(ToolError, match=r"example\.com is not among the allowed hosts \(none\)"):
        parse_hosts([]).check(parse_url("https://example.com/"))


def test_a_refusal_names_the_allowed_hosts_and_the_cure():
    with pytest.raises(ToolError) as caught:
        parse_hosts(["*.example.com", "b.example:81"]).check(parse_url("https://evil.test:444/?key=hunter2"))
    assert caught.value.message == (
        "evil.test:444 is not among the allowed hosts (*.example.com, b.example:81);"
        ' add "evil.test:444" to the hosts of the tool'
    )


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "*",
        "*.",
        "*.*.com",
        "a.*.com",
        "*example.com",
        "https://example.com",
        "example.com/path",
        "user@example.com",
        "example.com.",
        "example.com:0",
        "*.0.0.1",
        "*.[::1]",
        "127.1",
        "a b",
        "exa\x00mple.com",
        "*.com:x",
    ],
)
def test_a_pattern_that_could_mean_something_else_is_refused(pattern):
    with pytest.raises(ToolError, match="host pattern") as caught:
        parse_hosts([pattern])
    assert caught.value.kind is Kind.VALIDATION
