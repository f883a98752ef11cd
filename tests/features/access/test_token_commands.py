"""`crib token`: made and printed once, listed without the secret, taken back."""

import getpass
import json
import re
from pathlib import Path

import pytest

from toolcrib import Crib

TOKEN = re.compile(r"crib_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")


@pytest.fixture
def here(project, monkeypatch, cli):
    (project / "toolcrib.toml").write_text("")
    monkeypatch.chdir(project)
    return cli


def check(text):
    with Crib(Path.cwd()) as crib:
        return crib.tokens.check(text)


def test_a_token_is_printed_alone_and_works(here):
    ended = here("token", "create", "Ann's laptop", "--scope", "read", "--scope", "invoke")
    text = ended.out.strip()
    found = TOKEN.fullmatch(text)
    assert ended.code == 0
    assert ended.err == f"crib: this token is shown only now; revoke it with: crib token revoke {found[1]}\n"
    token = check(text)
    assert (token.id, token.name, token.scopes, token.expires_at) == (
        found[1],
        "Ann's laptop",
        {"read", "invoke"},
        None,
    )


def test_a_token_for_some_days_says_when_it_ends(here):
    made = json.loads(here("token", "create", "x", "--scope", "manage", "--days", "30", "--json").out)
    assert set(made) == {"id", "name", "scopes", "limits", "quota", "createdAt", "expiresAt", "token"}
    assert made["limits"] is None
    token = check(made["token"])
    assert token.expires_at - token.created_at == 30 * 86_400
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["expiresAt"])


def test_the_list_never_shows_a_token_again(here):
    assert here("token", "list").out == "there are no tokens; make one with: crib token create NAME --scope read\n"
    text = here("token", "create", "x", "--scope", "read").out.strip()
    token_id = TOKEN.fullmatch(text)[1]
    table, listed = here("token", "list").out, here("token", "list", "--json").out
    heading, row = table.splitlines()
    assert heading.split() == ["ID", "NAME", "SCOPES", "LIMITS", "CREATED", "EXPIRES"]
    assert row.split()[:3] == [token_id, "x", "read"]
    assert row.endswith("never")
    assert [one["id"] for one in json.loads(listed)] == [token_id]
    assert text[22:] not in table + listed


def test_a_revoked_token_is_good_for_nothing(here):
    text = here("token", "create", "x", "--scope", "read").out.strip()
    token_id = TOKEN.fullmatch(text)[1]
    ended = here("token", "revoke", token_id)
    assert (ended.code, ended.out) == (0, f"revoked {token_id}\n")
    assert check(text) is None
    ended = here("token", "revoke", token_id)
    assert (ended.code, ended.err) == (1, "crib: there is no token by this id; see: crib token list\n")


def test_a_person_who_writes_the_token_in_place_of_its_id_does_not_see_it_repeated(here):
    text = here("token", "create", "x", "--scope", "read").out.strip()
    ended = here("token", "revoke", text)
    assert ended.code == 1
    assert text not in ended.out + ended.err


@pytest.mark.parametrize(
    "words",
    [
        ["x"],
        ["x", "--scope", "root"],
        ["x", "--scope", "read", "--days", "0"],
        ["x", "--scope", "read", "--days", "99999"],
        ["", "--scope", "read"],
        ["x" * 65, "--scope", "read"],
        ["a\x1b[31m", "--scope", "read"],
        ["--scope", "read"],
    ],
)
def test_an_invalid_request_for_a_token_is_refused(here, words):
    ended = here("token", "create", *words)
    assert ended.code in {1, 2}
    assert not ended.out
    assert here("token", "list", "--json").out == "[]\n"


def test_outside_a_project_there_is_nothing_to_keep_a_token_in(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = cli("token", "create", "x", "--scope", "read")
    assert (ended.code, ended.err) == (2, "crib: there is no project to store it in; make one with: crib init\n")
    assert list(tmp_path.iterdir()) == []


def test_a_token_can_be_limited_to_tools_bundles_tags_and_a_mode(here):
    words = ("--tools", "read_file, shell", "--bundles", "builtin", "--tags", "files", "--mode", "text")
    ended = here("token", "create", "x", "--scope", "invoke", *words, "--json")
    limits = {"tools": ["read-file", "shell"], "bundles": ["builtin"], "tags": ["files"], "mode": "text"}
    made = json.loads(ended.out)
    assert made["limits"] == limits
    assert check(made["token"]).view.to_json() == limits
    assert "tools: read-file, shell; bundles: builtin; tags: files; mode: text" in " ".join(
        here("token", "list").out.split()
    )


def test_a_limit_that_names_nothing_makes_no_token(here):
    ended = here("token", "create", "x", "--scope", "invoke", "--tools", " , ")
    assert (ended.code, ended.err) == (
        2,
        "crib: --tools names nothing; write what the token sees, or leave the option out\n",
    )
    assert json.loads(here("token", "list", "--json").out) == []


def test_a_limited_token_may_not_manage(here):
    ended = here("token", "create", "x", "--scope", "manage", "--tools", "shell")
    assert ended.code != 0
    assert "a token that is limited to tools may not manage them" in ended.err


def test_limits_that_show_no_tool_are_told(here):
    ended = here("token", "create", "x", "--scope", "invoke", "--tools", "nothing-of-the-kind")
    assert "the token sees no tool that is there now" in ended.err
    assert TOKEN.fullmatch(ended.out.strip())


def test_the_audit_trail_says_whose_token_an_id_is(here):
    made = json.loads(here("token", "create", "Ann's laptop", "--scope", "invoke", "--tools", "shell", "--json").out)
    here("token", "revoke", made["id"])
    with Crib(Path.cwd()) as crib:
        revoked, created = crib.audit.events()
    assert (created["what"], created["about"], created["actor"]) == ("token.created", made["id"], getpass.getuser())
    assert (created["facts"]["name"], created["facts"]["limits"]) == ("Ann's laptop", {"tools": ["shell"]})
    assert (revoked["what"], revoked["about"]) == ("token.revoked", made["id"])
    assert made["token"] not in str(created)
