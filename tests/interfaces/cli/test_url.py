"""The command line with --url: a real server in a process of its own, and the same words as on its machine."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from warm_python import WarmPython

SECONDS = 30
MODULE = "crib_url_host"
HOST = '''
from toolcrib import Intent, Kind, ToolError, tool
from toolcrib import Cost
from toolcrib.model.result import Outcome


@tool(tags=["numbers", "Quick"])
def add_numbers(first: int, second: int = 1) -> int:
    """Add two numbers.

    Args:
        first: One number.
        second: The other one.
    """
    return first + second


@tool
def say(text: str) -> str:
    """Give a text back."""
    return text


@tool(bundle="other", name="say")
def second_say(text: str) -> str:
    """Go by a name that is taken."""
    return text


@tool(requires=["net.http"])
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


@tool(confirm=True)
def wipe(what: str) -> str:
    """Wipe something out."""
    return f"wiped {what}"


@tool(modes=["voice"])
def speak() -> str:
    """Say something aloud."""
    return "spoken"


@tool
def half() -> str:
    """Fail after a while."""
    raise ToolError(Kind.PERMANENT, "the second half is missing", value="the first half")


@tool
def pretend() -> str:
    """Claim that a confirmation is missing."""
    raise ToolError(Kind.CONFIRMATION_REQUIRED, "confirm me", details={"confirmation": "x"})


@tool
def large(letters: int) -> str:
    """Return a long text."""
    return "x" * letters


@tool
async def slow() -> str:
    """Take its time."""
    import asyncio

    await asyncio.sleep(60)
    return "late"


@tool
def request_for() -> object:
    """Ask the host for something."""
    return Outcome(value={"deep": [1, 2.5, None, 2**70]}, intents=(Intent(type="open_door", fields={"n": 1}),))
'''
SCRIPT = """
tool_id: greet-service
tool_type: script
version: "2.0.0"
description: "Greet a service"
executor_id: subprocess
category: services
tags: [services]
cost: {per_invocation: 0.01, per_minute: 0.05, estimated_duration: 60}
retry_policy: {max_attempts: 3}
config: {command: echo, args: [hello], env: {API_TOKEN: hunter2}}
parameters: [{name: service, type: string, description: Which one}]
documentation: {examples: [{arguments: {service: web}}]}
"""
BUNDLE = {"slug": "weather", "displayName": "Weather", "isEnabled": True}
FORECAST = {
    "schemaVersion": "toolcrib-1",
    "slug": "forecast",
    "version": "v1",
    "displayName": "The forecast",
    "isEnabled": True,
    "type": "http",
    "argSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "outputSchema": {},
    "impl": {"urlTemplate": "https://weather.example/${city}"},
}


@dataclass(frozen=True)
class CompletedCommand:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Shop:
    """A project, and the server over it."""

    folder: Path
    url: str


@contextmanager
def serving(folder: Path, home: Path, *words: str) -> Iterator[str]:
    """The URL of a server over the folder."""
    command = [sys.executable, "-u", "-m", "toolcrib", "serve", "--port", "0", "-C", str(folder), *words]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    with WarmPython(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment) as server:
        try:
            assert select.select([server.stdout or -1], [], [], SECONDS)[0], "the server did not start"
            yield server.stdout.readline().split()[-1]
        finally:
            server.terminate()
            try:
                server.wait(SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, empty_home: Path) -> Iterator[Shop]:
    """A project with tools of every kind, served."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / f"{MODULE}.py").write_text(HOST)
    (folder / "toolcrib.toml").write_text(
        f'modules.tools = ["{MODULE}"]\ncalls.result_bytes = 1000\ncatalog.disabled = ["shell"]\n'
    )
    (folder / ".ai" / "tools" / "services").mkdir(parents=True)
    (folder / ".ai" / "tools" / "services" / "greet.yaml").write_text(SCRIPT)
    (folder / "tools" / "count_words").mkdir(parents=True)
    (folder / "tools" / "count_words" / "schema.json").write_text("{}")
    (folder / "tools" / "twice.py").write_text(
        'def twice(text: str) -> str:\n    """Say it twice."""\n    return text * 2\n'
    )
    (folder / "tools" / "broken.py").write_text("def broken(:\n")
    with serving(folder, empty_home) as url:
        yield Shop(folder, url)


@pytest.fixture
def here(
    shop: Shop, cli: Callable[..., CompletedCommand], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., CompletedCommand]]:
    """Run a command in the project."""
    monkeypatch.chdir(shop.folder)
    yield cli
    sys.modules.pop(MODULE, None)


@pytest.fixture
def there(
    shop: Shop, cli: Callable[..., CompletedCommand], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., CompletedCommand]:
    """Run a command with --url, from a folder where nothing is."""

    def run(command: str, *words: str) -> CompletedCommand:
        monkeypatch.chdir(tmp_path)
        ended = cli(command, *words, "--url", shop.url)
        monkeypatch.chdir(shop.folder)
        return ended

    return run


SAME = [
    ("list",),
    ("list", "--json"),
    ("list", "--tag", "quick"),
    ("list", "--tag", "nobody"),
    ("list", "--executors"),
    *(("show", name) for name in ("add_numbers", "say", "other/say", "greet_service", "twice", "shell", "speak")),
    *(("show", name, "--json") for name in ("add_numbers", "greet-service", "fetch")),
    *(("show", name) for name in ("add_number", "nobody-at-all", "count_words", "")),
    ("explain", "add_numbers", "first=1"),
    ("explain", "add_numbers", "first=1", "--json"),
    ("explain", "add_numbers", "first=one"),
    ("explain", "wipe", "what=disk"),
    ("explain", "speak", "--mode", "text"),
    ("explain", "nobody"),
    ("explain", "shell", "command=ls"),
    ("call", "add_numbers", "first=2", "second=40"),
    ("call", "add_numbers", "first=two"),
    ("call", "add_numbers"),
    ("call", "say", "text=\x1b[31mred"),
    ("call", "twice", "text=ab"),
    ("call", "speak", "--mode", "voice"),
    ("call", "speak", "--mode", "text"),
    ("call", "half"),
    ("call", "pretend", "--yes"),
    ("call", "request_for"),
    ("call", "add_number", "first=1"),
    ("call", "shell", "command=ls"),
    ("call", "send", "to=Ada"),
    ("call", "wipe", "what=disk", "--yes"),
    ("call", "say", "--args", '{"text": "ü"}'),
    ("search", "add"),
    ("search", "add", "--json"),
    ("search", "say", "--limit", "1"),
    ("search", "--question", "how do I give a text back?"),
    ("search", "shell", "--all", "--json"),
    ("search", "zzzzzz"),
    ("bundle", "list"),
]


# What helps the operator, and what helps a client of its server.
CURES = {
    "see its parameters with: crib show add_numbers": "see its parameters with: GET /crib/tools?name=add_numbers",
    "list the tools with: crib list": "list the tools with: GET /crib/tools",
    "take 'shell' out of catalog.disabled in toolcrib.toml": "ask the operator to enable it",
    "not built yet; run: crib build": "not built yet; ask the operator to build it",
    '"cure": "run: crib build"': '"cure": "ask the operator to build it"',
    "tools/count_words is not built (not in a registry); run: crib build": "its file cannot be used; ask the operator",
    "let a person confirm it (crib call --yes), or hand the token of this answer back for them": (
        "let a person confirm it, and send the token of this answer with the same call"
    ),
}


def read_by_a_client(text):
    """What a command prints here, as it prints it from afar: with the cures of a client, and without files and settings."""
    text = " ".join(re.sub(r"\n  (?:where|granted): [^\n]*(?:\n    [^\n]*)*", "", text).split())
    text = re.sub(r'write \\?"[^"]*" = [^;]*? for one call:(?: --grant [\w.]+)+', "ask the operator to grant it", text)
    for cure, instead in CURES.items():
        text = text.replace(cure, instead)
    text = re.sub(r'"(?:where|granted)": "[^"]*", ', "", text)
    return re.sub(r"([A-Z_]{5,} \([a-z-]+), [^)]*\)", r"\1)", text)


@pytest.mark.parametrize("words", SAME, ids=" ".join)
def test_a_command_says_the_same_from_afar(here, there, words):
    near, far = here(*words), there(*words)
    assert far.code == near.code
    assert read_by_a_client(far.out) == read_by_a_client(near.out)
    assert read_by_a_client(far.err) == read_by_a_client(near.err)


def test_the_codes_of_a_call_from_afar_are_those_of_a_call_here(there):
    codes = {
        ("add_numbers", "first=1"): 0,
        ("half",): 1,
        ("pretend",): 1,
        ("add_numbers", "first=one"): 3,
        ("shell", "command=ls"): 3,
        ("send", "to=Ada"): 3,
        ("nobody",): 4,
        ("wipe", "what=disk"): 5,
    }
    assert {words: there("call", *words).code for words in codes} == codes


def test_a_whole_result_keeps_its_shape(here, there):
    for words in (("request_for",), ("half",), ("nobody",)):
        near, far = (json.loads(run("call", *words, "--full").out) for run in (here, there))
        assert far.keys() == near.keys()
        assert (far["error"] or {}).keys() == (near["error"] or {}).keys()
        assert far["meta"].keys() == near["meta"].keys()


def test_a_call_that_waits_for_confirmation_gets_it_by_token(there):
    waiting = there("call", "wipe", "what=disk")
    assert (waiting.code, waiting.out) == (5, "")
    token = waiting.err.split("--confirm ")[1].split()[0]
    assert there("call", "wipe", "what=disk", "--confirm", token).out == "wiped disk\n"
    assert there("call", "wipe", "what=disk", "--confirm", token).code == 5


def at_a_terminal(folder: Path, *words: str, answer: bytes) -> tuple[int, str, str]:
    """Run a command with a person who answers the first question; the code, what it printed and what it asked."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "toolcrib", *words]
    seen = ""
    with WarmPython(command, cwd=folder, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True) as asking:
        os.close(theirs)
        while select.select([ours], [], [], SECONDS)[0]:
            try:
                seen += os.read(ours, 65536).decode()
            except OSError:  # the other side is closed
                break
            if "[y/N]" in seen and answer:
                os.write(ours, answer)
                answer = b""
        out, _ = asking.communicate(timeout=SECONDS)
    os.close(ours)
    return asking.returncode, out, seen


def test_at_a_terminal_the_question_is_asked_here_and_the_call_is_made_there(shop, tmp_path):
    words = ("call", "wipe", "what=disk", "--url", shop.url)
    code, out, seen = at_a_terminal(tmp_path, *words, answer=b"y\n")
    assert (code, out) == (0, "wiped disk\n")
    assert '"what": "disk"' in seen
    assert at_a_terminal(tmp_path, *words, answer=b"n\n")[:2] == (5, "")


def test_at_a_terminal_no_person_is_asked_to_grant_what_the_server_grants(shop, tmp_path):
    code, out, seen = at_a_terminal(tmp_path, "call", "send", "to=Ada", "--url", shop.url, answer=b"y\n")
    assert (code, out) == (3, "")
    assert "[y/N]" not in seen


def test_a_large_result_is_read_from_where_it_is(shop, there):
    called = there("call", "large", "letters=5000")
    assert called.out == "x" * 2000 + "\n"
    rest = called.err.split("the rest: crib ")[1].split()
    assert rest[-2:] == ["--url", shop.url]
    ended = there(*rest[:-2])
    assert (ended.code, ended.out) == (0, "x" * 3000 + "\n")
    piece = there("result", rest[1], "--offset", "10", "--length", "20")
    assert piece.out == "x" * 20 + "\n"
    assert "characters left: 4970; continue with --offset 30" in piece.err
    assert there("result", "0" * 48).code == 1


def test_a_call_that_takes_too_long_is_given_up(there):
    ended = there("call", "slow", "--timeout", "0.2")
    assert (ended.code, ended.out) == (1, "")
    assert "no complete response within" in ended.err


def test_tools_and_bundles_are_switched_there(here, there):
    assert there("disable", "twice").out == "tools/twice@1.0.0 is disabled\n"
    assert there("call", "twice", "text=a").code == 3
    assert "off" in next(line for line in here("list").out.splitlines() if line.startswith("twice"))
    assert there("enable", "twice").out == "tools/twice@1.0.0 is enabled\n"
    assert there("call", "twice", "text=a").out == "aa\n"
    assert there("disable", "other/*").out == "the bundle other is disabled\n"
    assert there("call", "other/say", "text=a").code == 3
    assert there("enable", "other/*").out == "the bundle other is enabled\n"
    assert "it still cannot be called" in there("enable", "shell").err
    unknown = there("disable", "twise")
    assert (unknown.code, "twice" in unknown.err) == (4, True)
    assert there("disable", "nothing/*").code == 1


def test_a_bundle_is_loaded_and_deleted_there(here, there, tmp_path):
    folder = tmp_path / "weather"
    folder.mkdir()
    (folder / "bundle.json").write_text(json.dumps(BUNDLE))
    (folder / "forecast.json").write_text(json.dumps(FORECAST))
    loaded = there("bundle", "load", str(folder))
    assert [line.split()[0] for line in loaded.out.splitlines()] == ["made", "made"], loaded.err
    again = there("bundle", "load", str(folder))
    assert [line.split()[0] for line in again.out.splitlines()] == ["kept", "kept"]
    assert there("show", "forecast") == here("show", "forecast")
    refused = there("bundle", "delete", "weather")
    assert (refused.code, "CONFLICT" in refused.err) == (1, True)
    (folder / "forecast.json").write_text(json.dumps({**FORECAST, "version": "v2", "type": "magic"}))
    wrong = there("bundle", "load", str(folder))
    assert wrong.code == 1
    assert f"{folder / 'forecast.json'}: " in wrong.err


def test_grants_are_not_ours_to_give(there):
    for command in ("call", "explain"):
        ended = there(command, "send", "to=Ada", "--grant", "net.http")
        assert (ended.code, ended.out) == (2, "")
        assert "set on the server" in ended.err


@pytest.mark.parametrize(
    "words",
    [
        *(("build",), ("check",), ("doctor",), ("new", "x"), ("test",), ("stats",), ("prepare", "say"), ("init",)),
        *(("serve",), ("token", "list"), ("secret", "list"), ("registry",), ("prompt",), ("version",), ("pull", "x")),
        *(("run", "x.py"), ("sink", "x")),
    ],
    ids=" ".join,
)
def test_every_other_command_says_that_it_is_local(cli, words):
    for option in (("--url", "http://127.0.0.1:1"), ("--url=http://127.0.0.1:1",)):
        ended = cli(*words, *option)
        command = " ".join(("crib", *(word for word in words if word not in {"x", "say", "x.py"})))
        assert (ended.code, ended.out) == (2, "")
        assert ended.err == f"crib: {command} works on files of this machine; leave --url out\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--url", "http://127.0.0.1:1", "list"), "--url belongs to a command; write: crib list --url URL"),
        (("list", "-C", ".", "--url", "http://127.0.0.1:1"), "leave one of them out"),
        (("list", "--url", "127.0.0.1:1"), "--url: URL refused: it does not begin with http:// or https://"),
        (("list", "--url", "http://user:pass@127.0.0.1:1"), "--url: URL refused: it holds a user name or password"),
        (("list", "--url", "http://127.0.0.1:1/?x=1"), "--url: the URL of a server has no query"),
        (("call", "x", "--url", "ftp://x"), "--url: URL refused"),
        *(
            (("list", "--url", f"http://127.0.0.1:1{path}"), "give the root URL of the server: http://127.0.0.1:1\n")
            for path in ("/tools", "/tools/", "/tools/bundles/x", "/docs", "/crib/health", "/openapi.json")
        ),
        (("list", "--url", "http://127.0.0.1:1/a/tools"), "give the root URL of the server: http://127.0.0.1:1/a\n"),
    ],
)
def test_a_url_in_the_wrong_place_or_of_the_wrong_form_is_wrong_use(cli, words, complaint):
    ended = cli(*words)
    assert (ended.code, ended.out) == (2, "")
    assert complaint in ended.err
    assert "pass" not in ended.err.replace("password", "")


def test_a_server_that_asks_for_tokens_is_used_with_one(cli, tmp_path, empty_home, monkeypatch):
    (tmp_path / "toolcrib.toml").write_text(f'modules.tools = ["{MODULE}"]\n')
    (tmp_path / f"{MODULE}.py").write_text(HOST)
    tokens = {}
    for scope in ("read", "invoke"):
        made = cli("token", "create", "me", "--scope", scope, "-C", str(tmp_path), "--json")
        tokens[scope] = json.loads(made.out)["token"]
    with serving(tmp_path, empty_home, "--host", "0.0.0.0") as served:
        url = f"http://127.0.0.1:{served.rpartition(':')[2]}"
        for token, complaint in (
            (None, "the variable CRIB_TOKEN on the command line"),
            ("wrong", "give another token"),
        ):
            if token is not None:
                monkeypatch.setenv("CRIB_TOKEN", token)
            for words in (("list",), ("call", "say", "text=a"), ("explain", "say"), ("disable", "say")):
                ended = cli(*words, "--url", url)
                assert (ended.code, ended.out) == (3, ""), ended
                assert complaint in ended.err
                assert "AUTH (token)" in ended.err
        monkeypatch.setenv("CRIB_TOKEN", "two\nlines")
        assert "holds what no token does" in cli("list", "--url", url).err
        monkeypatch.setenv("CRIB_TOKEN", tokens["read"])
        assert cli("list", "--url", url).code == 0
        ended = cli("call", "say", "--args", "{}", "--url", url)
        assert (ended.code, "ask the operator for a token that may" in ended.err) == (3, True)
        monkeypatch.setenv("CRIB_TOKEN", tokens["invoke"])
        assert cli("call", "say", "--args", '{"text": "a"}', "--url", url).out == "a\n"
        assert cli("call", "nobody", "--url", url).code == 4
    sys.modules.pop(MODULE, None)
