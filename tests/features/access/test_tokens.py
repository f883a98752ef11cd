"""Tokens: shown once, kept as a hash, good for what they say, and gone when they are revoked."""

import hashlib
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import ToolError
from toolcrib.features.access import tokens as module
from toolcrib.infra.storage import MemoryStore
from toolcrib.infra.storage.file_store import FileStore


@pytest.fixture(params=["memory", "files"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else FileStore(tmp_path / ".toolcrib")


@pytest.fixture
def tokens(store):
    return module.Tokens(store)


def test_a_token_proves_who_has_it_and_what_it_is_good_for(tokens):
    before = time.time()
    token, text = tokens.create("Ann's laptop", ["read", "invoke"])
    assert text.startswith(f"crib_{token.id}_")
    assert len(text) == 65
    found = tokens.check(text)
    assert found == token
    assert (found.name, found.scopes, found.expires_at) == ("Ann's laptop", {"read", "invoke"}, None)
    assert before - 1 <= found.created_at <= time.time() + 1


def test_another_process_takes_it_too(store, tokens):
    token, text = tokens.create("x", ["manage"])
    assert module.Tokens(store).check(text) == token


def test_only_a_hash_of_it_is_kept(tokens, store):
    token, text = tokens.create("x", ["read"])
    secret = text.removeprefix(f"crib_{token.id}_")
    (key,) = store.keys("tokens/")
    document = store.get(key)
    assert secret.encode() not in document
    assert hashlib.sha256(secret.encode()).hexdigest().encode() in document
    assert secret not in repr(token) + repr(tokens.list())


def test_two_tokens_have_nothing_in_common(tokens):
    made = [tokens.create("x", ["read"]) for _ in range(20)]
    assert len({token.id for token, _ in made}) == len({text for _, text in made}) == 20
    assert tokens.list() == sorted((token for token, _ in made), key=lambda token: (token.created_at, token.id))


def test_the_secret_of_one_token_does_not_prove_another(tokens):
    (one, one_text), (other, _) = tokens.create("one", ["read"]), tokens.create("other", ["manage"])
    assert tokens.check(one_text.replace(one.id, other.id)) is None


def test_a_token_expires_to_the_second(store):
    now = [1_000.0]
    tokens = module.Tokens(store, clock=lambda: now[0])
    token, text = tokens.create("x", ["read"], seconds=60)
    assert token.expires_at == 1_060.0
    for moment, holds in ((1_000.0, True), (1_059.9, True), (1_060.0, False), (2_000.0, False), (1_059.0, True)):
        now[0] = moment
        assert (tokens.check(text) == token) is holds
    assert tokens.list() == [token]


def test_a_revoked_token_is_refused_at_once(tokens):
    token, text = tokens.create("x", ["read"])
    assert tokens.check(text) == token
    assert tokens.revoke(token.id)
    assert tokens.check(text) is None
    assert tokens.list() == []
    assert not tokens.revoke(token.id)


def test_elsewhere_a_revoked_token_is_refused_within_a_tenth_of_a_second(store, tokens):
    token, text = tokens.create("x", ["read"])
    elsewhere = module.Tokens(store)
    assert elsewhere.check(text) == token
    tokens.revoke(token.id)
    deadline = time.monotonic() + 0.1
    while time.monotonic() < deadline:
        elsewhere.check(text)
    assert elsewhere.check(text) is None


def test_a_token_whose_file_is_deleted_by_hand_is_revoked(tmp_path):
    tokens = module.Tokens(FileStore(tmp_path))
    token, text = tokens.create("x", ["read"])
    (tmp_path / "tokens" / f"{token.id}.json").unlink()
    assert tokens.check(text) is None


def test_no_thread_that_is_looking_while_a_token_is_revoked_remembers_it(store, monkeypatch):
    tokens = module.Tokens(store)
    token, text = tokens.create("x", ["read"])
    reading, revoked = threading.Event(), threading.Event()
    get = store.get

    def slow(key):
        document = get(key)
        reading.set()
        assert revoked.wait(25)
        return document

    monkeypatch.setattr(store, "get", slow)
    looking = threading.Thread(target=tokens.check, args=(text,))
    looking.start()
    assert reading.wait(25)
    tokens.revoke(token.id)
    revoked.set()
    looking.join(25)
    assert tokens.check(text) is None


def test_a_token_that_was_just_looked_at_is_not_looked_at_again(store, tokens, monkeypatch):
    monkeypatch.setattr(module, "LOOK_SECONDS", 60)
    token, text = tokens.create("x", ["read"])
    assert tokens.check(text) == token

    def refuse(key):
        raise AssertionError(key)

    monkeypatch.setattr(store, "get", refuse)
    monkeypatch.setattr(store, "stamp", refuse)
    assert tokens.check(text) == token
    assert tokens.check(text[:-1] + ("A" if text[-1] != "A" else "B")) is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "crib",
            "crib__",
            "crib_0123456789abcdef_",
            "Bearer x",
            None,
            5,
            b"crib_" + b"x" * 60,
            ["crib"],
            "\0" * 65,
        ),
        *("x" * 10_000_000, "crib_" + "../../../../../" + "x" * 45, "crib_0123456789abcdef_" + "ü" * 43),
        *("crib_0123456789abcdef_" + "\ud800" * 43, "CRIB_0123456789abcdef_" + "a" * 43),
        *("crib_0123456789ABCDEF_" + "a" * 43, "crib_0123456789abcdef_" + "a" * 42 + "\n", " " * 65),
    ],
)
def test_what_is_no_token_is_refused_without_looking(store, monkeypatch, text):
    def refuse(key):
        raise AssertionError(key)

    monkeypatch.setattr(store, "stamp", refuse)
    assert module.Tokens(store).check(text) is None


@settings(max_examples=examples(200))
@given(st.text(max_size=80) | st.from_regex(r"crib_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", fullmatch=True))
def test_no_text_at_all_is_taken_for_a_token(text):
    assert module.Tokens(MemoryStore()).check(text) is None


@pytest.mark.parametrize("name", ["", " ", "x" * 65, "a\nb", "a\x1b[0m", "\ud800", None, 5])
def test_a_name_says_who_has_it(tokens, name):
    with pytest.raises(ToolError, match="the name of a token is a text of 1 to 64 letters"):
        tokens.create(name, ["read"])


@pytest.mark.parametrize("scopes", [[], ["write"], ["read", "all"], "read", ["*"], [""]])
def test_a_token_is_good_for_known_things_only(tokens, scopes):
    with pytest.raises(ToolError, match="a token is good for some of read, invoke, manage"):
        tokens.create("x", scopes)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 11 * 365 * 86_400])
def test_a_token_holds_for_a_time(tokens, seconds):
    with pytest.raises(ToolError, match="more than 0 seconds and at most 10 years"):
        tokens.create("x", ["read"], seconds=seconds)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"read"', b'"root"'),
        (b'"read"', b""),
        (b'"sha256": "', b'"sha256": "00'),
        (b'"sha256"', b'"md5"'),
        (b'"id": "', b'"id": "x'),
        (b"null", b'"never"'),
        (b'"name": "x"', b'"name": null'),
        (b"{", b"["),
    ],
)
def test_a_token_that_was_changed_is_good_for_nothing(store, tokens, old, new, caplog):
    token, text = tokens.create("x", ["read"])
    key = f"tokens/{token.id}.json"
    store.replace(key, store.get(key).replace(old, new, 1))
    assert tokens.check(text) is None
    assert tokens.list() == []
    assert f"token {token.id} cannot be read and counts as revoked" in caplog.text
    assert text.removeprefix(f"crib_{token.id}_") not in caplog.text
    assert tokens.revoke(token.id)


@pytest.mark.parametrize("token_id", ["", "../key", "0123456789abcdef", "x" * 1_000, "0123456789ABCDEF"])
def test_there_is_nothing_to_revoke_under_another_id(tokens, token_id):
    assert not tokens.revoke(token_id)
