from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.lib.http_syntax import MAX_URL, Url, follow_reference, parse_url

HOSTILE = [
    # other schemes and shapes
    "",
    "example.com",
    "//example.com/",
    "http:example.com",
    "http:/example.com",
    "http:///example.com",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "javascript:alert(1)",
    "data:text/plain,x",
    "unix:/run/docker.sock",
    "http+unix://%2Frun%2Fdocker.sock/",
    "httpſ://example.com/",
    "http：//example.com/",
    " http://example.com/",
    "http://example.com/ ",
    # user names and passwords
    "http://user@example.com/",
    "http://user:secret@example.com/",
    "http://@example.com/",
    "http://example.com@127.0.0.1/",
    "http://example.com:80@127.0.0.1/",
    "http://example.com%40127.0.0.1/",
    # characters that parsers disagree about
    "http://example.com\\@127.0.0.1/",
    "http://127.0.0.1\\.example.com/",
    "http:\\\\127.0.0.1\\",
    "http://exa\tmple.com/",
    "http://exa\nmple.com/",
    "http://example.com\r\nHost: evil/",
    "http://example.com\x00.evil.com/",
    "http://example.com%00.evil.com/",
    "http://example.com/\x00",
    "http://example.com/\x7f",
    "http://example.com/\x85",
    "http://example.com/a b",
    "http://example.com/\r\nX-Injected: 1",
    "http://example.com/\u2028",
    "http://example.com/\u202etxt",
    "http://example.com/\ud800",
    "http://exam\u200bple.com/",
    "http://exam\u00adple.com/",
    "http://exam ple.com/",
    "http://exam\u00a0ple.com/",
    "http://example.com;evil/",
    "http://exam,ple.com/",
    "http://exam$ple.com/",
    "http://<example>.com/",
    # percent-encoding in the host
    "http://127%2e0%2e0%2e1/",
    "http://%31%32%37.0.0.1/",
    "http://%6cocalhost/",
    "http://example%2ecom/",
    "http://%/",
    # IPv4 in other spellings
    "http://2130706433/",
    "http://017700000001/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0X7F.1/",
    "http://0177.0.0.1/",
    "http://127.0.0.01/",
    "http://127.1/",
    "http://127.0.1/",
    "http://0/",
    "http://127.0.0.0x1/",
    "http://0x/",
    "http://1.2.3.4.5/",
    "http://1.2.3.256/",
    "http://foo.1/",
    "http://127.0.0.1./",
    "http://127.0.0.1../",
    "http://example.com./",
    "http://.example.com/",
    "http://example..com/",
    "http://./",
    # digits and dots from elsewhere in Unicode
    "http://①②⑦.⓪.⓪.①/",
    "http://１２７.０.０.１/",
    "http://127。0。0。1/",
    "http://127．0．0．1/",
    "http://127｡0｡0｡1/",
    "http://١٢٧.0.0.1/",
    "http://ⓛocalhost/",
    "http://ｌocalhost/",
    "http://\u212aelvin.example/",
    "http://exa\u0301\u0301\u0301-.com/",
    "http://xn--a.example/",
    "http://xn--ls8h.example/",
    "http://xn--.example/",
    "http://☃.example/",
    "http://-a.example/",
    "http://a-.example/",
    "http://aאb.example/",
    # brackets and zones
    "http://[example.com]/",
    "http://[127.0.0.1]/",
    "http://[::1/",
    "http://::1/",
    "http://::1]/",
    "http://[::1]evil.com/",
    "http://[::1].evil.com/",
    "http://[[::1]]/",
    "http://[]/",
    "http://[::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[fe80::1%1]/",
    "http://[v1.fe80::a]/",
    "http://[::g]/",
    "http://[:::1]/",
    "http://[1::2::3]/",
    "http://[::ffff:127.1]/",
    "http://[::ffff:0177.0.0.1]/",
    "http://evil.com[::1]/",
    # ports
    "http://example.com:/",
    "http://example.com:0/",
    "http://example.com:080/",
    "http://example.com:65536/",
    "http://example.com:99999999999999999999/",
    "http://example.com:-1/",
    "http://example.com:+80/",
    "http://example.com:8 0/",
    "http://example.com:８０/",
    "http://example.com:80:80/",
    "http://example.com:http/",
    "http://[::1]:/",
    "http://[::1]:x/",
    # lengths
    f"http://{'a' * 64}.example/",
    f"http://{'.'.join(['a' * 60] * 5)}/",
    f"http://example.com/{'a' * MAX_URL}",
    f"http://example.com/{'é' * (MAX_URL // 4)}",
    "http:///",
    "http://?x",
    "http://#x",
    "http://",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:60]))
def test_a_spelling_that_parsers_disagree_about_is_refused(text):
    with pytest.raises(ToolError) as caught:
        parse_url(text)
    assert caught.value.kind is Kind.VALIDATION
    assert caught.value.message.startswith("URL refused: ")


@pytest.mark.parametrize(
    ("text", "scheme", "host", "port", "target"),
    [
        ("http://example.com", "http", "example.com", 80, "/"),
        ("HTTPS://EXAMPLE.com:443/A", "https", "example.com", 443, "/A"),
        ("http://example.com?x=1", "http", "example.com", 80, "/?x=1"),
        ("http://example.com/?", "http", "example.com", 80, "/?"),
        ("http://example.com#secret", "http", "example.com", 80, "/"),
        ("http://example.com/a/../b/./c//d?e=/../f", "http", "example.com", 80, "/a/../b/./c//d?e=/../f"),
        ("http://example.com/%2e%2E/%zz%", "http", "example.com", 80, "/%2e%2E/%zz%"),
        ("http://example.com/@user:x", "http", "example.com", 80, "/@user:x"),
        ("http://example.com/wiki/Köln?q=ß", "http", "example.com", 80, "/wiki/K%C3%B6ln?q=%C3%9F"),
        ("http://bücher.example/", "http", "xn--bcher-kva.example", 80, "/"),
        ("http://BÜCHER.example/", "http", "xn--bcher-kva.example", 80, "/"),
        ("http://XN--bcher-kva.example/", "http", "xn--bcher-kva.example", 80, "/"),
        ("http://my_host.example:8080/", "http", "my_host.example", 8080, "/"),
        ("http://r3---sn-abc.example/", "http", "r3---sn-abc.example", 80, "/"),
        ("http://localhost:65535/", "http", "localhost", 65535, "/"),
        ("http://93.184.216.34/", "http", "93.184.216.34", 80, "/"),
        ("http://[2606:4700:0:0::1111]:81/", "http", "2606:4700::1111", 81, "/"),
    ],
)
def test_a_url_is_read_into_its_wire_form(text, scheme, host, port, target):
    assert parse_url(text) == Url(scheme=scheme, host=host, port=port, target=target)


def test_an_address_is_told_from_a_name():
    assert str(parse_url("http://192.0.2.1/").address) == "192.0.2.1"
    assert str(parse_url("http://[2001:DB8::1]/").address) == "2001:db8::1"
    assert parse_url("http://example.com/").address is None


def test_neither_a_password_nor_a_query_shows_in_a_message_or_a_representation():
    with pytest.raises(ToolError, match="it holds a user name or password; leave it out") as caught:
        parse_url("http://user:hunter2@example.com/?key=hunter2")
    assert "hunter2" not in caught.value.message
    assert "hunter2" not in repr(parse_url("http://example.com/?key=hunter2"))


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("http://b.example/x", "http://b.example/x"),
        ("//b.example:81/x", "https://b.example:81/x"),
        ("/x", "https://a.example/x"),
        ("x", "https://a.example/dir/x"),
        ("./x/", "https://a.example/dir/x/"),
        ("../x?y=../z", "https://a.example/x?y=../z"),
        ("../../../x", "https://a.example/x"),
        ("..", "https://a.example/"),
        (".", "https://a.example/dir/"),
        ("?y", "https://a.example/dir/page?y"),
        ("?", "https://a.example/dir/page?"),
        ("", "https://a.example/dir/page?q=/1"),
        ("#part", "https://a.example/dir/page?q=/1"),
        ("/.//b.example/", "https://a.example//b.example/"),
        ("@b.example", "https://a.example/dir/@b.example"),
    ],
)
def test_a_reference_is_read_from_the_page_it_stands_on(reference, expected):
    assert str(follow_reference(parse_url("https://a.example/dir/page?q=/1"), reference)) == expected


@pytest.mark.parametrize(
    "reference", ["ftp://b.example/", "file:///etc/passwd", "/\\b.example", "///b", "//u@b/", "x:y"]
)
def test_a_reference_passes_through_the_same_grammar(reference):
    with pytest.raises(ToolError, match="URL refused"):
        follow_reference(parse_url("https://a.example/"), reference)


PIECES = st.sampled_from(
    [
        "http://",
        "https://",
        "a",
        ".",
        ":",
        "/",
        "?",
        "#",
        "@",
        "[",
        "]",
        "::1",
        "127.0.0.1",
        "%",
        "0x",
        "é",
        "xn--",
        "-",
        "8",
        "\\",
        "ß",
        "\u0301",
    ]
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=12).map("".join), st.text().map("http://{}".format)))
@example("http://[::ffff:1.2.3.4]/")
@example("http://xn--0/")
def test_any_text_is_refused_or_read_to_a_form_that_reads_the_same_again(text):
    url = None
    with suppress(ToolError):
        url = parse_url(text)
    if url is None:
        return
    assert parse_url(str(url)) == url
    assert str(url).isascii()
    assert url.address is None or str(url.address) == url.host


@given(
    st.lists(st.sampled_from(["..", ".", "/", "a", "?", "#", "//", ":", "\\", "http:", "é"]), max_size=10).map("".join)
)
def test_any_reference_without_an_authority_stays_on_its_origin(reference):
    base = parse_url("https://a.example/dir/page")
    url = None
    with suppress(ToolError):
        url = follow_reference(base, reference)
    if url is not None and not reference.startswith(("//", "http://")):
        assert url.origin == base.origin
        assert "/../" not in url.target.partition("?")[0]
