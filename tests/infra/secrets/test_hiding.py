"""Secrets that were handed out are found in all later reports, in every usual spelling."""

import base64
import html
import io
import json
import logging
import re
import threading
import urllib.parse
from pathlib import Path

import pytest
from every_line import at_every_line
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.infra.secrets import secret as module
from toolcrib.infra.secrets.secret import MASK, HideSecrets, Masking

VALUE = "s3cr€t/+key?&=\"ü'<>\\ %end"


def masking_of(*values):
    masking = Masking()
    for value in values:
        masking.add(value)
    return masking


def spelled(value):
    """The spellings, worked out by others than ours."""
    raw = value.encode()
    yield value
    yield raw.decode("latin-1")
    yield urllib.parse.quote(value)
    yield urllib.parse.quote(value, safe="")
    yield urllib.parse.quote_plus(value)
    yield urllib.parse.urlencode({"k": value})[2:]
    yield re.sub("%..", lambda found: found[0].lower(), urllib.parse.quote(value, safe=""))
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield json.dumps(json.dumps(value))[3:-3]
    yield urllib.parse.quote(urllib.parse.quote(value, safe=""), safe="")
    yield html.escape(value)
    yield base64.b64encode(raw).decode()
    yield base64.urlsafe_b64encode(raw).decode()
    yield raw.hex()
    yield raw.hex().upper()


@pytest.mark.parametrize("spelling", list(spelled(VALUE)))
def test_every_usual_spelling_is_hidden(spelling):
    masking = masking_of(VALUE)
    shown = masking.hide(f"before {spelling} after")
    assert shown.rstrip("=").startswith(f"before {MASK}")
    assert spelling.rstrip("=") not in shown


@pytest.mark.parametrize("name", ["", "a", "ab", "abc", "user", "someone-else"])
def test_a_password_is_hidden_in_basic_credentials_of_any_name(name):
    coded = base64.b64encode(f"{name}:{VALUE}".encode()).decode()
    shown = masking_of(VALUE).hide(f"Basic {coded}")
    assert MASK in shown
    left = shown.removeprefix("Basic ").replace(MASK, "")
    assert len(left) <= len(base64.b64encode(f"{name}::".encode())) + 4


@given(st.text(st.characters(codec="utf-8"), min_size=4, max_size=40))
def test_no_spelling_of_any_value_gets_through(value):
    masking = masking_of(value)
    for spelling in spelled(value):
        if len(spelling) >= 8:
            assert spelling.rstrip("=") not in masking.hide(f"<{spelling}>").replace(MASK, "")


LONG = "sk-Live-9f8e7d6c5b4a-Zürich-𝄞"


@pytest.mark.parametrize("shown", [LONG.lower(), LONG.upper(), urllib.parse.quote(LONG.lower())])
def test_a_secret_in_one_case_is_hidden(shown):
    assert masking_of(LONG).hide(f"to http://{shown}.example") == f"to http://{MASK}.example"


@pytest.mark.parametrize(
    "shown",
    [
        "".join(f"%{byte:02X}" for byte in LONG.encode()),
        "".join(f"%{byte:02x}" for byte in LONG.encode()),
        "%73" + urllib.parse.quote(LONG)[1:],
        "".join(f"\\u{int.from_bytes(LONG.encode('utf-16-be')[i:i + 2]):04x}" for i in range(0, 2 * len(LONG) + 2, 2)),
        "\\x73" + LONG[1:],
        "".join(f"&#{ord(letter)};" for letter in LONG),
        "".join(f"&#x{ord(letter):x};" for letter in LONG),
        "&#115;" + LONG[1:],
        base64.encodebytes((LONG * 3).encode()).decode(),
        base64.b64encode(LONG.encode()).decode()[:20] + "\r\n  " + base64.b64encode(LONG.encode()).decode()[20:],
        json.dumps(base64.encodebytes((LONG * 3).encode()).decode()),
    ],
)  # fmt: skip
def test_a_text_that_tells_a_secret_behind_escapes_is_hidden_as_a_whole(shown):
    masking = masking_of(LONG)
    assert masking.is_in(f"before {shown} after")
    assert masking.hide(f"before {shown} after") == MASK
    assert masking.hide_in({"a": [shown]}) == {"a": [MASK]}


def test_texts_with_escapes_and_lines_that_tell_nothing_stay():
    text = "100%25 &amp; C:\\new\nde\nv1 \\u0041"
    assert masking_of("dev1", LONG).hide(text) == text
    assert not masking_of("dev1", LONG).is_in(text)


def test_a_secret_of_several_lines_is_hidden_line_by_line_and_on_one_line():
    value = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n"
    masking = masking_of(value)
    assert masking.hide("at MIIEvQIBADANBgkqhkiG9w0B:") == f"at {MASK}:"
    assert masking.hide(" ".join(value.split())) == MASK
    assert masking.hide(value.strip()) == MASK


def test_one_that_begins_like_another_leaves_no_end_behind():
    masking = masking_of("abcdef", "abcdefghij")
    assert masking.hide("abcdefghij abcdef") == f"{MASK} {MASK}"


def test_what_is_too_short_to_be_secret_is_left_alone():
    masking = masking_of("eu", "1")
    assert not masking
    assert masking.hide("1 in eu") == "1 in eu"


def test_members_of_json_are_hidden_with_their_names():
    hidden = masking_of("sesame-9f1c").hide_in({"sesame-9f1c": ["x sesame-9f1c", 5, None, ("sesame-9f1c",)]})
    assert hidden == {MASK: [f"x {MASK}", 5, None, [MASK]]}


class Connection:
    """Its JSON has only the host; its text, by one of the two functions, has the password."""

    def __init__(self, text, shown):
        self.host = "example.com"
        self._text, self._shown = text, shown

    def __str__(self):
        return self._text

    def __repr__(self):
        return self._shown


def test_an_object_whose_text_tells_more_than_its_json_is_hidden():
    masking = masking_of("s3cret-value")
    for told in (Connection("to s3cret-value", "x"), Connection("x", "to s3cret-value")):
        assert masking.hide_in({"to": [told]}) == {"to": [f"to {MASK}"]}, told
    silent = Connection("x", "x")
    assert masking.hide_in({"to": silent})["to"] is silent


def test_notes_and_further_attributes_of_an_error_are_hidden():
    class RequestError(ToolError):
        pass

    error = RequestError(Kind.PERMANENT, "it failed")
    error.add_note("sent to https://example.com/?key=s3cret-value")
    error.url, error.status = "https://example.com/?key=s3cret-value", 500
    hidden = masking_of("s3cret-value").hide_error(error)
    assert hidden.__notes__ == [f"sent to https://example.com/?key={MASK}"]
    assert (hidden.url, hidden.status) == (f"https://example.com/?key={MASK}", 500)


def test_values_that_come_and_go_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(module, "MAX_VALUES", 10)
    masking = masking_of(*(f"value-{number:04}" for number in range(100)))
    assert masking.hide("value-0099 value-0090 value-0089") == f"{MASK} {MASK} value-0089"


def test_of_stored_values_none_is_forgotten(monkeypatch):
    monkeypatch.setattr(module, "MAX_VALUES", 2)
    stored = frozenset(f"stored-{number:04}" for number in range(5))
    masking = Masking(lambda: stored)
    for number in range(5):
        masking.add(f"token-{number:04}")
    assert masking.hide(" ".join(stored)) == " ".join([MASK] * 5)
    assert masking.hide("token-0002 token-0003 token-0004") == f"token-0002 {MASK} {MASK}"


@pytest.mark.parametrize("in_thread", [False, True])
def test_stored_values_are_hidden_at_every_line_of_the_first_look_at_them(in_thread):
    """Garbage collection ends calls of closed event loops at any line, and other threads run at any."""
    stored = frozenset({"of the project", "of the file"})

    def prepare():
        masking, shown = Masking(lambda: stored), []

        def act():
            shown.append(masking.hide("of the project"))

        def act_in_thread():
            other = threading.Thread(target=act, daemon=True)
            other.start()
            # While this thread changes the values, the other one waits.
            other.join(0.01)

        def check():
            assert masking.hide("of the project, of the file") == f"{MASK}, {MASK}"
            assert set(shown) <= {MASK}

        return masking.spelled, act_in_thread if in_thread else act, check

    at_every_line((Masking.spelled, Masking.add, Masking._change, module._Known.__init__), prepare)


def test_a_value_that_is_added_at_any_line_of_a_search_is_hidden_from_then_on():
    def prepare():
        masking = masking_of("sesame-9f1c")

        def check():
            assert masking.hide("another-77a0") == MASK

        return lambda: masking.hide("nothing"), lambda: masking.add("another-77a0"), check

    at_every_line((Masking.hide, Masking._finds, module._Pattern.__init__, module._Pattern.is_in), prepare)


class Told(logging.Formatter):
    """Looks at what was raised by itself, as some formatters do."""

    def format(self, record):
        raised = record.exc_info[1] if record.exc_info else None
        return f"{super().format(record)} | {type(raised).__name__}: {raised} {raised.__cause__ if raised else ''}"


@pytest.fixture
def log():
    stream, logger = io.StringIO(), logging.getLogger("toolcrib.told")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Told("%(message)s %(field)s", defaults={"field": "-"}))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield logger, handler, stream
    logger.removeHandler(handler)


def test_a_log_shows_no_secret_in_message_arguments_fields_or_what_was_raised(log):
    logger, handler, stream = log
    handler.addFilter(HideSecrets(masking_of("sesame-9f1c")))
    logger.info("a sesame-9f1c b %s c %r", "sesame-9f1c", {"k": "sesame-9f1c"}, extra={"field": ["sesame-9f1c"]})
    try:
        try:
            raise KeyError("inner sesame-9f1c")
        except KeyError as inner:
            raise ValueError("outer sesame-9f1c") from inner
    except ValueError:
        logger.exception("it failed", stack_info=True)
    logger.info("%d sesame-9f1c", "does not fit")
    shown = stream.getvalue()
    assert "sesame-9f1c" not in shown
    assert f"a {MASK} b {MASK}" in shown
    assert f"ValueError: outer {MASK}" in shown
    assert "(its arguments do not fit)" in shown


def test_a_log_shows_no_secret_in_fields_that_are_objects(log):
    logger, handler, stream = log
    handler.addFilter(HideSecrets(masking_of("sesame-9f1c")))
    hidden = (
        Path("/sesame-9f1c"),
        b"sesame-9f1c",
        {"sesame-9f1c"},
        KeyError("sesame-9f1c"),
        Connection("sesame-9f1c", ""),
    )
    for field in hidden:
        logger.info("told", extra={"field": field})
    assert "sesame-9f1c" not in stream.getvalue()
    logger.info("told", extra={"field": Path("/plain")})
    assert "told /plain" in stream.getvalue()


class Untold(Exception):
    def __str__(self):
        raise SystemExit("it has no text")


def test_what_cannot_be_formatted_is_logged_and_fails_nothing(log):
    logger, handler, stream = log
    masking = masking_of("sesame-9f1c")
    handler.addFilter(HideSecrets(masking))
    odd = SyntaxError("odd")
    odd.lineno, odd.text = 1, 5
    odd.__cause__ = ValueError("sesame-9f1c")
    assert masking.hide_raised(odd).__cause__ is None
    assert isinstance(masking.hide_raised(Untold()), Untold)
    logger.error("it failed", exc_info=odd)
    record = logging.LogRecord("toolcrib", logging.ERROR, "", 0, Untold(), (), None)
    assert HideSecrets(masking).filter(record)
    assert "<Untold without a text>" in record.getMessage()
    shown = stream.getvalue()
    assert "SyntaxError: odd" in shown
    assert "sesame-9f1c" not in shown


def test_every_exception_of_a_group_is_searched():
    group = ExceptionGroup("many", [*map(ValueError, range(20)), ValueError("sesame-9f1c")])
    hidden = masking_of("sesame-9f1c").hide_raised(group)
    assert str(hidden) == "many (21 sub-exceptions)"
    assert not hasattr(hidden, "exceptions")


def test_a_log_without_secrets_stays_as_it_is(log):
    logger, handler, stream = log
    handler.addFilter(HideSecrets(masking_of("sesame-9f1c")))
    problem = ValueError("as it was")
    logger.warning("%s and %d", "text", 5, exc_info=problem)
    assert stream.getvalue() == "text and 5 -\nValueError: as it was | ValueError: as it was None\n"


def test_before_any_secret_was_handed_out_records_are_not_even_looked_at():
    record = logging.LogRecord("x", 20, "", 1, "%s", ("a",), None)
    assert HideSecrets(Masking()).filter(record)
    assert record.args == ("a",)


@given(st.lists(st.text(min_size=4, max_size=30), min_size=1, max_size=20), st.text(max_size=200), st.data())
def test_one_pass_over_a_text_finds_what_a_search_for_each_value_finds(values, text, data):
    masking = masking_of(*values)
    text += data.draw(st.sampled_from(values)) * data.draw(st.integers(0, 1))
    for spelling in masking.spelled():
        assert spelling not in masking.hide(text) or spelling in MASK
    assert masking.is_in(text) or all(value not in text for value in values)


@given(st.lists(st.text(min_size=4, max_size=30), min_size=1, max_size=20), st.text(max_size=200), st.data())
def test_more_values_than_a_pattern_can_hold_are_found_too(values, text, data):
    pattern = module._Pattern(tuple(values))
    pattern._search = None
    text += data.draw(st.sampled_from(values)) * data.draw(st.integers(0, 1))
    assert pattern.is_in(text) is any(value in text for value in values)
