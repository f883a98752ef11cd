"""Secrets go into requests and come out nowhere: not in values, errors, meta or logs, even if a server repeats them."""

import base64
import html
import json
import logging
from urllib.parse import quote, quote_plus

import pytest

from sample_tools import http_call
from toolcrib import ToolError
from toolcrib.model.tool import Encoding, ErrorMode

KEY = 'sk-"9a/+ %üz&<x>'
SPELLINGS = {
    "plain": KEY,
    "json": json.dumps(KEY)[1:-1],
    "url": quote(KEY, safe=""),
    "path": quote(KEY),
    "form": quote_plus(KEY),
    "small digits": quote(KEY, safe="").lower(),
    "html": html.escape(KEY),
    "base64": base64.b64encode(KEY.encode()).decode(),
    "basic": base64.b64encode(f"user:{KEY}".encode()).decode(),
    "hex": KEY.encode().hex(),
}


def told(outcome):
    """Everything that a runner gives out, as text in which nothing is escaped."""
    error = None if outcome.error is None else outcome.error.to_json()
    return json.dumps([outcome.value, error, dict(outcome.meta)], ensure_ascii=False)


def assert_hidden(text):
    for name, spelling in SPELLINGS.items():
        shown = base64.b64encode(KEY.encode()).decode()[4:16] if name == "basic" else spelling
        assert shown not in text, name
        assert json.dumps(shown, ensure_ascii=False)[1:-1] not in text, name


@pytest.mark.spec("S1-39")
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("status", ["200 OK", "400 Bad"])
@pytest.mark.parametrize("encoding", list(Encoding))
async def test_a_server_that_repeats_a_secret_is_not_quoted(
    bench, serve, answer, secrets_of, spelling, status, encoding
):
    echo = {"args": {"key": SPELLINGS[spelling]}, SPELLINGS[spelling]: [SPELLINGS[spelling]]}
    body = f"data: {json.dumps(echo)}\n\n".encode() if encoding == "events" else echo
    site = await serve(answer(body, status))
    bench.secrets = secrets_of(KEY=KEY)
    outcome = await bench.run(bench.tool(http_call(url=site.url("/?key=${KEY}"), encoding=encoding)))
    assert quote(KEY, safe="") in site.targets[0]
    assert_hidden(told(outcome))
    assert "***" in told(outcome)


@pytest.mark.spec("S1-39")
async def test_escapes_do_not_smuggle_a_secret_out(bench, serve, answer, secrets_of):
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in "abcd-efgh")
    site = await serve(answer(f'{{"a": "{escaped}"}}'.encode()))
    bench.secrets = secrets_of(KEY="abcd-efgh")
    assert await bench.value(site.url("/?key=${KEY}")) == {"a": "***"}


@pytest.mark.spec("S1-39")
async def test_another_character_set_does_not_smuggle_a_secret_out(bench, serve, answer, secrets_of):
    site = await serve(answer("the key is abcd-efgh".encode("utf-16-le"), content_type="text/plain; charset=utf-16le"))
    bench.secrets = secrets_of(KEY="abcd-efgh")
    assert await bench.value(http_call(url=site.url("/?key=${KEY}"), encoding="text")) == "the key is ***"


@pytest.mark.spec("S1-39")
@pytest.mark.parametrize(
    "content_type",
    ["text/plain; xcharset=utf-8; charset=utf-16", "text/plain; a=charset=utf-8; charset=utf-16", "text/plain;charset=UTF-16"],
)  # fmt: skip
@pytest.mark.parametrize("encoding", list(Encoding))
async def test_only_the_character_set_that_counts_is_asked_for(
    bench, serve, answer, secrets_of, content_type, encoding
):
    text = 'data: "the key is abcd-efgh"\n\n' if encoding == "events" else '"the key is abcd-efgh"'
    site = await serve(answer(text.encode("utf-16"), content_type=content_type))
    bench.secrets = secrets_of(KEY="abcd-efgh")
    value = await bench.value(http_call(url=site.url("/?key=${KEY}"), encoding=encoding))
    assert str(value).strip("'\"[]") == "the key is ***"


@pytest.mark.spec("S1-39")
@pytest.mark.parametrize("extract", ["ab?c?d?", "([a-z]{2})", "(?:key is )(....)", "(bcd-efg)", "key is (.+)"])
@pytest.mark.parametrize("encoding", list(Encoding))
async def test_an_expression_does_not_cut_a_secret_into_pieces(bench, serve, answer, secrets_of, extract, encoding):
    echo = '{"text": "the key is abcd-efgh"}'
    site = await serve(answer((f"data: {echo}\n\n" if encoding == "events" else echo).encode()))
    bench.secrets = secrets_of(KEY="abcd-efgh")
    call = http_call(url=site.url("/?key=${KEY}"), encoding=encoding, extract=extract)
    outcome = await bench.run(bench.tool(call))
    assert outcome.error is None
    for piece in ("ab", "bc", "cd", "ef", "gh"):
        assert piece not in told(outcome)


@pytest.mark.spec("S1-39")
async def test_escaped_letters_are_not_taken_apart_either(bench, serve, answer, secrets_of):
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in "abcd-efgh")
    site = await serve(answer(f'{{"a": "{escaped}", "b": ["x"]}}'.encode()))
    bench.secrets = secrets_of(KEY="abcd-efgh")
    shown = {
        extract: await bench.value(http_call(url=site.url("/?key=${KEY}"), extract=extract))
        for extract in (r"u(\w{4})", "$.a", "$.b[0]")
    }
    assert shown == {r"u(\w{4})": "***", "$.a": "***", "$.b[0]": "x"}


async def test_a_later_request_gets_the_piece_that_callers_do_not_see(bench, serve, answer, secrets_of):
    site = await serve([answer({"text": "key=abcd-efgh;"}), answer({"ok": True})])
    bench.secrets = secrets_of(KEY="abcd-efgh")
    first = http_call(name="first", url=site.url("/?key=${KEY}"), extract="key=(....)")
    outcome = await bench.run(bench.tool(first, http_call(url=site.url("/${first}"))))
    assert site.targets[1] == "GET /abcd"
    assert "abcd" not in told(outcome)


async def test_the_content_type_is_told_without_what_stands_behind_it(bench, serve, answer):
    reply = answer(b"1", content_type="application/json; note=\xff").decode("latin-1").encode("latin-1")
    site = await serve(reply)
    outcome = await bench.run(bench.tool(site.url()))
    assert outcome.meta["contentType"] == "application/json"


@pytest.mark.spec("S1-39")
async def test_a_host_in_lower_case_tells_nothing(bench, serve, answer, secrets_of):
    site = await serve(answer(b"", "302 Found", Location="http://ABCD-efgh-IJKL.evil.example/"))
    bench.secrets = secrets_of(KEY="ABCD-efgh-IJKL")
    outcome = await bench.run(bench.tool(site.url("/?key=${KEY}")))
    assert outcome.error is not None
    assert "abcd-efgh" not in told(outcome).lower()


async def test_a_secret_of_digits_does_not_come_back_as_a_number(bench, serve, answer, secrets_of):
    site = await serve(answer({"pin": 48151623, "x": 42}))
    bench.secrets = secrets_of(PIN="48151623")
    assert await bench.value(site.url("/?pin=${PIN}")) == {"pin": "***", "x": 42}


@pytest.mark.spec("S1-39")
@pytest.mark.parametrize("error_mode", list(ErrorMode))
async def test_a_content_type_a_redirect_and_a_pattern_tell_nothing(bench, serve, answer, secrets_of, error_mode):
    site = await serve(
        [answer(b"x", content_type="a/abcd-efgh"), answer(b"", "302 Found", Location="http://abcd-efgh.example/")]
    )
    bench.secrets = secrets_of(KEY="abcd-efgh")
    call = http_call(url=site.url("/?key=${KEY}"), error_mode=error_mode)
    for _ in range(2):
        outcome = await bench.run(bench.tool(call))
        assert "abcd-efgh" not in told(outcome)
    assert len(site.requests) == 2


@pytest.mark.spec("S1-39")
async def test_a_refusal_tells_nothing(bench, serve, answer, secrets_of):
    site = await serve(answer(b"1"))
    bench.secrets = secrets_of(KEY="../abcd-efgh")
    with pytest.raises(ToolError) as refusal:
        bench.check(bench.tool(site.url("/${KEY}/${nope}")))
    assert "abcd" not in str(refusal.value.to_json())


@pytest.mark.spec("S1-39")
async def test_logs_tell_nothing(bench, serve, answer, secrets_of, caplog):
    caplog.set_level(logging.DEBUG)
    site = await serve([answer(b"abcd-efgh", "500 Oops", content_type="text/plain"), answer(b"<abcd-efgh>")])
    bench.secrets = secrets_of(KEY="abcd-efgh")
    outcome = await bench.run(bench.tool(http_call(url=site.url("/?key=${KEY}"), headers={"X-Key": "${KEY}"})))
    assert outcome.error is not None
    assert "abcd-efgh" not in caplog.text
    assert "abcd-efgh" not in told(outcome)


@pytest.mark.spec("S1-39")
async def test_what_later_requests_get_is_not_hidden_from_them(bench, serve, answer, secrets_of):
    """A server may hand back the very key that it was sent; the next request needs it as it is."""
    site = await serve([answer({"key": "abcd-efgh"}), answer({"ok": True})])
    bench.secrets = secrets_of(KEY="abcd-efgh")
    calls = (http_call(name="first", url=site.url("/?key=${KEY}")), http_call(url=site.url("/${first.key}")))
    outcome = await bench.run(bench.tool(*calls))
    assert site.targets[1] == "GET /abcd-efgh"
    assert "abcd-efgh" not in told(outcome)


async def test_a_secret_that_was_changed_counts_at_once_and_both_stay_hidden(bench, serve, answer, secrets_of):
    site = await serve(answer({"old": "abcd-efgh", "new": "ijkl-mnop"}))
    bench.secrets = secrets_of(KEY="abcd-efgh")
    bound = bench.runner().bind(bench.tool(site.url("/?key=${KEY}")))
    from toolcrib import Call

    bound.check({}, Call(name="sample"))
    bench.secrets.values["KEY"] = "ijkl-mnop"
    bound.check({}, Call(name="sample"))
    assert bound._masking.hide("abcd-efgh ijkl-mnop") == "*** ***"
