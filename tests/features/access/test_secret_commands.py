"""`crib secret`: a secret is read unseen, and never shown."""

import io
import json
import os
import sys
from contextlib import suppress

import pytest

from toolcrib.infra.secrets.lookup import Secrets
from warm_python import WarmPython

VALUE = "sesame-9f1c"


@pytest.fixture
def typed(monkeypatch):
    """Hand a text to standard input."""

    def give(data):
        raw = data if isinstance(data, bytes) else data.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))

    return give


@pytest.fixture
def here(project, monkeypatch, cli):
    (project / "toolcrib.toml").write_text("")
    monkeypatch.chdir(project)
    return cli


def kept(project, name):
    found = Secrets(project / ".toolcrib", environment={}).get(name)
    return None if found is None else found.reveal()


@pytest.mark.parametrize(
    ("given", "value"),
    [(VALUE, VALUE), (f"{VALUE}\n", VALUE), (f"{VALUE}\r\n", VALUE), ("a\nb\n\n", "a\nb\n"), (" ü \n", " ü ")],
)
def test_a_secret_comes_from_standard_input(here, project, typed, given, value):
    typed(given)
    ended = here("secret", "set", "API_KEY")
    assert (ended.code, ended.out, ended.err) == (0, "stored API_KEY\n", "")
    assert kept(project, "API_KEY") == value


def test_a_secret_that_is_set_again_is_replaced_and_one_that_is_removed_is_gone(here, project, typed):
    for value in ("first", "second"):
        typed(value)
        assert here("secret", "set", "KEY").code == 0
        assert kept(project, "KEY") == value
    ended = here("secret", "remove", "KEY")
    assert (ended.code, ended.out) == (0, "removed KEY\n")
    assert kept(project, "KEY") is None
    ended = here("secret", "remove", "KEY")
    assert (ended.code, ended.err) == (1, "crib: there is no secret KEY; see: crib secret list\n")


@pytest.mark.parametrize("words", [["KEY", VALUE], [f"KEY={VALUE}"], ["KEY", "=", VALUE], ["KEY", "--", VALUE]])
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(here, project, typed, words):
    typed("other")
    ended = here("secret", "set", *words)
    assert ended.code == 2
    assert "a secret on the command line can be seen by others; change it, and give only its name" in ended.err
    assert VALUE not in ended.out + ended.err
    assert not (project / ".toolcrib" / "secrets.json").exists()


@pytest.mark.parametrize(
    ("name", "given", "complaint"),
    [
        ("KEY", "", "secret KEY: there is nothing in it"),
        ("KEY", "\n", "secret KEY: there is nothing in it"),
        ("KEY", b"hunter2\xff", "KEY is not UTF-8; write it as text, such as base64"),
        ("KEY", "hunter2\0", "secret KEY: it holds a NUL"),
        ("KEY", "hunter2" * 10_000, "64000 are the most"),
        ("hunter2-x", VALUE, "this cannot be the name of a secret"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_not_repeated(here, project, typed, name, given, complaint):
    typed(given)
    ended = here("secret", "set", name)
    assert ended.code in {1, 2}
    assert complaint in ended.err
    assert "hunter2" not in ended.out + ended.err
    assert not (project / ".toolcrib" / "secrets.json").exists()


def test_the_list_says_names_and_places_and_never_a_value(here, project, typed, monkeypatch):
    assert here("secret", "list").out == "there are no secrets; store one with: crib secret set NAME\n"
    (project / "toolcrib.toml").write_text('[secrets]\nenvironment = ["A", "KEY"]\nfile = "more.env"\n')
    (project / "more.env").write_text(f"B={VALUE}\n")
    (project / "more.env").chmod(0o600)
    monkeypatch.setenv("A", VALUE)
    typed(VALUE)
    assert here("secret", "set", "KEY").code == 0
    ended = here("secret", "list")
    assert [line.split(maxsplit=1) for line in ended.out.splitlines()] == [
        *(["SECRET", "FROM"], ["A", "the environment"], ["B", str(project / "more.env")], ["KEY", "this project"])
    ]
    listed = json.loads(here("secret", "list", "--json").out)
    assert listed[0] == {"name": "A", "from": "the environment"}
    assert VALUE not in ended.out + ended.err + str(listed)


def test_a_secret_that_does_not_count_is_told(here, project, typed, monkeypatch):
    (project / "toolcrib.toml").write_text('[secrets]\nenvironment = ["KEY"]\n')
    monkeypatch.setenv("KEY", "of the environment")
    typed(VALUE)
    ended = here("secret", "set", "KEY")
    assert (ended.code, ended.err) == (0, "crib: KEY is in the environment too, and that one counts\n")
    ended = here("secret", "remove", "KEY")
    assert (ended.code, ended.err) == (0, "crib: KEY is still in the environment; remove it there\n")
    ended = here("secret", "remove", "KEY")
    assert (ended.code, ended.err) == (1, "crib: KEY is only in the environment; remove it there\n")


def test_outside_a_project_there_is_nothing_to_keep_a_secret_in(cli, tmp_path, monkeypatch, typed):
    monkeypatch.chdir(tmp_path)
    typed(VALUE)
    for words in (("set", "KEY"), ("remove", "KEY")):
        ended = cli("secret", *words)
        assert (ended.code, ended.err) == (
            2,
            "crib: there is no project to store it in; make one with: crib init\n",
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize("complains_to", ["the terminal", "a file"])
def test_at_a_terminal_the_secret_is_asked_for_and_does_not_show(project, tmp_path, complains_to):
    (project / "toolcrib.toml").write_text("")
    theirs, ours = os.openpty()
    asked, asking = (theirs, ours) if complains_to == "the terminal" else os.pipe()
    process = WarmPython(
        [sys.executable, "-m", "toolcrib", "-C", str(project), "secret", "set", "KEY"],
        stdin=ours,
        stdout=ours,
        stderr=asking,
        start_new_session=True,
    )
    for descriptor in {ours, asking}:
        os.close(descriptor)
    try:
        shown = b""
        while b"Value of KEY" not in shown:
            shown += os.read(asked, 1_000)
        os.write(theirs, VALUE.encode() + b"\n")
        assert process.wait(20) == 0
        shown += read_all(asked) + read_all(theirs)
    finally:
        process.kill()
        process.wait()
        for descriptor in {theirs, asked}:
            os.close(descriptor)
    assert b"stored KEY" in shown
    assert VALUE.encode() not in shown
    assert kept(project, "KEY") == VALUE


def read_all(descriptor):
    """Everything until the other end is closed, which a terminal tells by an error."""
    found = b""
    with suppress(OSError):
        while data := os.read(descriptor, 1_000):
            found += data
    return found
