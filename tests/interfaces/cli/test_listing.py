"""What `crib list`, `crib show` and `crib check` say about tools of scripts: all that is known, and no secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Cost, Crib, Limits, RetryPolicy, Tool
from toolcrib.features.bundles.stored_documents import Documents
from toolcrib.interfaces.cli import commands
from toolcrib.interfaces.cli.project_commands import check_tools
from toolcrib.lib.redaction import HIDDEN, hide_secrets, is_secret
from toolcrib.model.tool import Backoff, Chained, Origin

BUNDLE = "018faf50-b7b6-7a01-9a05-a22a6e0af101"

CONFIG = {
    "command": "deploy",
    "args": ["--fast", "--token", "t0p-secret", "--level=3", "--api-key=k3y", "--password=${PASSWORD}"],
    "env": {"KUBECONFIG": "/etc/kube", "DB_PASSWORD": "hunter2", "API_TOKEN": "${API_TOKEN}", "PIN_SECRET": 1234},
    "url": "https://ann:s3cret@example.com/x?key_id=7&access_token=abc&page=2",
    "headers": {"Authorization": "Bearer abcdefghijkl", "X-Trace": "Bearer ${TOKEN}", "max_tokens": 100},
}
SECRETS = ("t0p-secret", "k3y", "hunter2", "1234", "s3cret", "=abc", "abcdefghijkl")


def make(name: str = "deploy", bundle: str = "project", kind: str = "subprocess", **facts: Any) -> Tool:
    run = Chained(
        kind=kind,
        tool_type=facts.pop("tool_type", "script"),
        executor=facts.pop("executor", "python_runtime"),
        folder=Path(),
        config=facts.pop("config", {}),
        action=facts.pop("action", ""),
        hosts=facts.pop("hosts", None),
    )
    described: dict[str, Any] = {
        "description": f"Run {name}.",
        "parameters": {"type": "object", "properties": {}},
        **facts,
    }
    return Tool(name=name, bundle=bundle, run=run, **described)


DEPLOY = make(
    version="1.2.3",
    config=CONFIG,
    action="",
    hosts=("api.example.com",),
    category="deployment/kubernetes",
    requires=frozenset({"shell.execute", "net.http"}),
    tags=("kubernetes", "Cloud"),
    limits=Limits(
        timeout_ms=300_000,
        retry=RetryPolicy(max_attempts=3, backoff=Backoff.EXPONENTIAL, initial_delay=1, max_delay=60, multiplier=2),
    ),
    cost=Cost(per_invocation=0.01, per_minute=0.05, estimated_duration=60),
    documentation="https://docs.example.com/tools/deploy",
    examples=({"service": "web"},),
    metadata={"author": "platform-team", "experimental": True, "stability": "beta", "requires": "nothing at all"},
    deprecated=True,
    origin=Origin(place="deploy.yaml", line=4),
    warnings=("deploy.yaml:4: is vague; be specific",),
    output_schema={"type": "object"},
)


@pytest.fixture
def said(capsys):
    """What a command prints about the tools."""

    def run(command, *tools: Tool, **more: object) -> str:
        with Crib(tools=tools, builtins={"enabled": False}) as crib:
            command(crib, **more)
        return capsys.readouterr().out

    return run


def show(crib: Crib, name: str = "deploy", *, as_json: bool = False):
    return commands.show_tool(crib, name, as_json=as_json)


def list_tools(crib: Crib, **options: Any):
    return commands.list_tools(crib, **options)


def rows(text: str) -> dict[str, str]:
    """The lines of a table by what stands first in them, without the platform's own tools."""
    lines = [line for line in text.partition("\n\n")[0].splitlines()[1:] if " system " not in line]
    return {line.split()[0]: line for line in lines}


@pytest.mark.spec("S3-02")
@pytest.mark.spec("S3-37")
@pytest.mark.spec("S3-38")
def test_show_tells_all_that_the_author_said(said):
    lines = said(show, DEPLOY).splitlines()
    told = [" ".join(line.split()) for line in lines]
    for line in (
        "state: on, deprecated, experimental",
        "requires: net.http, shell.execute (not granted: net.http, shell.execute)",
        "limits: 300 s, 3 attempts (exponential: 1 s, 2 s)",
        "costs: 0.01 USD a call and 0.05 USD a minute; about 0.06 USD for a call of 60 s",
        "category: deployment/kubernetes",
        "tags: kubernetes, Cloud",
        "runs as: subprocess",
        "type: script",
        "executor: python_runtime",
        "reaches: api.example.com",
        "documentation: https://docs.example.com/tools/deploy",
        'example: {"service": "web"}',
        "metadata: author: platform-team",
        "metadata: stability: beta",
        "metadata: requires: nothing at all",
        "written in: deploy.yaml:4",
        "warning: deploy.yaml:4: is vague; be specific",
    ):
        assert line in told, line
    assert any(line.startswith('config: {"command": "deploy"') for line in told)


@pytest.mark.spec("S3-02")
def test_the_same_is_told_as_json(said):
    facts = json.loads(said(show, DEPLOY, as_json=True))
    expected = {
        "category": "deployment/kubernetes",
        "tags": ["kubernetes", "Cloud"],
        "marks": ["deprecated", "experimental"],
        "kind": "subprocess",
        "toolType": "script",
        "executor": "python_runtime",
        "action": None,
        "hosts": ["api.example.com"],
        "requires": ["net.http", "shell.execute"],
        "timeoutMs": 300_000,
        "documentation": "https://docs.example.com/tools/deploy",
        "examples": [{"service": "web"}],
        "metadata": DEPLOY.metadata,
        "origin": "deploy.yaml:4",
        "warnings": ["deploy.yaml:4: is vague; be specific"],
        "shadows": [],
        "shadowedBy": None,
        "parameters": DEPLOY.parameters,
        "output": {"type": "object"},
    }
    assert {name: facts[name] for name in expected} == expected
    assert facts["retry"]["max_attempts"] == 3
    assert facts["cost"]["estimate"] == 0.06
    assert json.loads(said(list_tools, DEPLOY, as_json=True))[0].items() <= facts.items()


def test_no_secret_of_a_config_is_shown(said):
    for text in (
        said(show, DEPLOY),
        said(show, DEPLOY, as_json=True),
        said(list_tools, DEPLOY, as_json=True),
        said(list_tools, DEPLOY, as_json=False),
    ):
        assert [secret for secret in SECRETS if secret in text] == []
    config = json.loads(said(show, DEPLOY, as_json=True))["config"]
    assert config["args"] == ["--fast", "--token", HIDDEN, "--level=3", f"--api-key={HIDDEN}", "--password=${PASSWORD}"]
    assert config["env"] == {
        "KUBECONFIG": "/etc/kube",
        "DB_PASSWORD": HIDDEN,
        "API_TOKEN": "${API_TOKEN}",
        "PIN_SECRET": HIDDEN,
    }
    assert config["url"] == f"https://{HIDDEN}@example.com/x?key_id=7&access_token={HIDDEN}&page=2"
    assert config["headers"] == {"Authorization": HIDDEN, "X-Trace": "Bearer ${TOKEN}", "max_tokens": 100}


@pytest.mark.parametrize(
    "text",
    [
        "Bearer abcdefghijklmnop",
        "sk-abcdefghijklmnopqrstuvwx",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-1234567890-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
        "-----BEGIN PRIVATE KEY-----\nabc",
        "postgres://user:pass@host/db",
    ],
)
def test_what_is_known_to_be_a_secret_is_hidden_at_any_depth(text):
    for config in ({"note": text}, {"a": [{"b": f"see {text}"}]}):
        shown = json.dumps(hide_secrets(config))
        assert HIDDEN in shown
        assert text.split()[-1].split("@")[0].removeprefix("postgres://") not in shown


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        *(
            (name, True)
            for name in ("password", "API_KEY", "apiKey", "dbPassword", "X-Auth-Token", "AWS_SECRET_ACCESS_KEY")
        ),
        *((name, True) for name in ("Authorization", "Cookie", "privateKey", "client-secret", "PGPASSWORD")),
        *((name, False) for name in ("key", "max_tokens", "tokens", "KUBECONFIG", "author", "monkey", "compass", "")),
    ],
)
def test_a_secret_is_known_by_the_words_of_its_name(name, secret):
    assert is_secret(name) is secret


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["a", "eyJ-", "://", "://a", "a-", "bearer ", "sk-", "a=", "-----BEGIN", "xoxa-"])
def test_a_long_text_is_looked_through_once(piece):
    text = piece * (200_000 // len(piece))
    # As a text, as the word before another, as a name, and as the value of that name.
    hide_secrets({"text": [text, ""], text: text})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=15,
)


@given(JSON, st.sampled_from(["password", "api_key", "Authorization", "secrets"]))
def test_nothing_that_stands_below_a_secret_name_is_shown(value, name):
    canary = "canary-0123456789"
    shown = json.dumps(hide_secrets({"x": [{name: {"deep": [value, {"er": canary}]}}, value]}))
    assert canary not in shown


@given(JSON)
def test_every_setting_can_be_shown(value):
    json.dumps(hide_secrets(value))


@pytest.mark.spec("S3-60")
@pytest.mark.parametrize("kind", ["library", "sink", "runtime"])
def test_what_is_not_for_calling_is_listed_with_its_kind_and_not_offered_to_models(said, kind):
    tool = make("helper", kind=kind, executor=None)
    row = rows(said(list_tools, tool, make(), as_json=False))["helper"]
    assert row.split()[:4] == ["helper", "on", "project", kind]
    facts = next(fact for fact in json.loads(said(list_tools, tool, as_json=True)) if fact["name"] == "helper")
    assert facts["kind"] == kind
    assert facts["models"]["offered"] is False
    assert kind in facts["models"]["reason"]
    assert " ".join(said(show, tool, name="helper").split()).count(f"offered to models: no: it is a {kind}, which") == 1


def test_list_marks_what_is_deprecated_or_experimental(said):
    tools = [
        make("old", deprecated=True),
        make("new", metadata={"experimental": True}),
        make("both", deprecated=True, metadata={"experimental": True}),
        make("sure", metadata={"experimental": "no"}),
    ]
    listed = rows(said(list_tools, *tools, as_json=False))
    assert {name: " ".join(row.split()).partition(" project")[0] for name, row in listed.items()} == {
        "old": "old on, deprecated",
        "new": "new on, experimental",
        "both": "both on, deprecated, experimental",
        "sure": "sure on",
    }


def test_list_and_show_tell_which_tool_shadows_which(said):
    tools = [make("hello", "project"), make("hello", "user"), make("hello", "shared", version="2.0.0")]
    listed = rows(said(list_tools, *tools, as_json=False))
    assert [" ".join(line.split()).partition(" subprocess")[0] for line in listed.values()] == [
        "hello on, shadows user/hello@1.0.0, shared/hello@2.0.0 project",
        "user/hello@1.0.0 on, shadowed by project/hello@1.0.0 user",
        "shared/hello@2.0.0 on, shadowed by project/hello@1.0.0 shared",
    ]
    shown = " ".join(said(show, *tools, name="hello").split())
    assert "shadows: user/hello@1.0.0, shared/hello@2.0.0" in shown
    assert "shadowed by" not in shown
    shown = " ".join(said(show, *tools, name="user/hello").split())
    assert "shadowed by: project/hello@1.0.0" in shown
    assert "shadows:" not in shown
    facts = [json.loads(said(show, *tools, name=name, as_json=True)) for name in ("hello", "user/hello")]
    assert [(fact["shadows"], fact["shadowedBy"]) for fact in facts] == [
        (["user/hello@1.0.0", "shared/hello@2.0.0"], None),
        ([], "project/hello@1.0.0"),
    ]


def test_a_tool_whose_name_a_broken_file_keeps_is_listed_by_its_address(crib, host_module):
    (host_module / "tools" / "fetch.py").write_text("def fetch(:\n")
    row = rows(crib("list").out)["builtin/fetch@1.0.0"]
    assert "on, shadowed by a broken file" in row


CONTROL = """
tool_id: service-control
tool_type: script
version: "{version}"
description: "Control a service of {who}"
executor_id: subprocess
category: services
tags: [services]
config:
  command: echo
actions:
  start-all:
    description: "Start it"
  stop-all:
    description: "Stop it"
"""
LIBRARY = """
tool_id: shared-words
tool_type: library
version: "1.0.0"
description: "Words for others"
executor_id: null
category: services
"""


@pytest.fixture
def spaces(project, tmp_path_factory, monkeypatch, cli):
    """Run a command in a project with scripts of its own, for a user who has some too."""
    home = tmp_path_factory.mktemp("home")
    for folder, who, version in ((project, "the project", "2.0.0"), (home, "the user", "1.0.0")):
        tools = folder / ".ai" / "tools" / "services"
        tools.mkdir(parents=True)
        (tools / "control.yaml").write_text(CONTROL.format(who=who, version=version))
    (home / ".ai/tools/services/words.yaml").write_text(LIBRARY)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(project)
    (project / "toolcrib.toml").write_text("builtins.enabled = false\n")

    def run(*words: str) -> tuple[int, str, str]:
        ended = cli(*words)
        return ended.code, ended.out, ended.err

    return run


def test_scripts_of_the_project_and_of_the_user_are_listed_with_who_shadows_whom(spaces):
    _, out, _ = spaces("list", "--tag", "services")
    assert [
        " ".join(line.split()).partition(" subprocess")[0] for line in out.partition("\n\n")[0].splitlines()[1:]
    ] == [
        "service-control-start-all on, shadows user/service-control-start-all@1.0.0, no grant project",
        "service-control-stop-all on, shadows user/service-control-stop-all@1.0.0, no grant project",
        "user/service-control-start-all@1.0.0 on, shadowed by project/service-control-start-all@2.0.0, no grant user",
        "user/service-control-stop-all@1.0.0 on, shadowed by project/service-control-stop-all@2.0.0, no grant user",
    ]
    _, out, _ = spaces("show", "service-control.stop-all")
    assert "address:            project/service-control-stop-all@2.0.0" in out
    assert "action:             stop-all" in out


@pytest.mark.spec("S3-28")
def test_an_unknown_action_ends_with_4_and_names_those_there_are(spaces):
    for command in ("show", "call"):
        code, _, err = spaces(command, "service-control.pause")
        assert code == 4
        assert "service-control has the actions service-control.start-all, service-control.stop-all" in err


@pytest.mark.spec("S3-60")
def test_a_library_is_listed_and_a_call_of_it_says_why_not(spaces):
    _, out, _ = spaces("list", "--json")
    (library,) = [tool for tool in json.loads(out) if tool["name"] == "shared-words"]
    assert (library["kind"], library["bundle"], library["toolType"]) == ("library", "user", "library")
    code, out, err = spaces("call", "shared-words")
    assert (code != 0, out) == (True, "")
    assert "shared-words is a library" in err


@pytest.mark.spec("S3-29")
def test_tools_are_found_by_their_tags(said, capsys):
    tools = [make("a", tags=("cloud", "fast")), make("b", tags=("Cloud",)), make("c")]
    assert sorted(rows(said(list_tools, *tools, as_json=False, tags=["cloud"]))) == ["a", "b"]
    assert list(rows(said(list_tools, *tools, as_json=False, tags=["CLOUD", "fast"]))) == ["a"]
    assert [fact["name"] for fact in json.loads(said(list_tools, *tools, as_json=True, tags=["fast"]))] == ["a"]
    assert json.loads(said(list_tools, *tools, as_json=True, tags=["slow"])) == []
    with Crib(tools=tools, builtins={"enabled": False}) as crib:
        list_tools(crib, as_json=False, tags=["slow"])
    assert "no tool has the tag slow; tags are Cloud, cloud, fast" in capsys.readouterr().err


@pytest.fixture
def stored(tmp_path):
    """A project with a tool of its own and seven stored ones, four of them with a tag."""
    (tmp_path / "toolcrib.toml").touch()
    with Crib(tmp_path, builtins={"enabled": False}) as crib:
        crib.bundles.put_bundle(BUNDLE, {"slug": "numbers", "displayName": "Numbers", "isEnabled": True})
        for number in range(7):
            document = {
                "schemaVersion": "toolcrib-1",
                "displayName": f"Number {number}",
                "description": "Ask for a number.",
                "type": "http",
                "isEnabled": True,
                "argSchema": {"type": "object", "properties": {}, "additionalProperties": False},
                "outputSchema": {},
                "impl": {"urlTemplate": "https://numbers.example/v1"},
                "tags": ["Even"] if number % 2 == 0 else ["odd"],
            }
            crib.bundles.put_tool(BUNDLE, f"number-{number}", "v1", document)
    with Crib(tmp_path, tools=[make("own", tags=("even",))], builtins={"enabled": False}) as crib:
        # Whether the index is as the disk has it is looked at first; documents are read for that only where it is not.
        crib.bundles.list_tools(page_size=1)
        yield crib


def test_of_stored_tools_only_those_with_the_tag_are_read(stored, monkeypatch, capsys):
    opened, read = [], Documents.tool
    monkeypatch.setattr(Documents, "tool", lambda self, slot, *given: opened.append(slot) or read(self, slot, *given))
    list_tools(stored, as_json=True, tags=["EVEN"])
    names = [facts["name"] for facts in json.loads(capsys.readouterr().out)]
    assert sorted(names) == ["number-0", "number-2", "number-4", "number-6", "own"]
    assert {slot.partition("/")[2].removesuffix("@v1") for slot in opened} <= {*names}
    opened.clear()
    list_tools(stored, as_json=False, tags=["even", "odd"])
    assert "no tool has the tag even and odd; tags are Even, even, odd" in capsys.readouterr().err
    assert opened == []


def test_the_command_line_lists_by_tag(crib):
    ended = crib("list", "--tag", "none", "--tag", "such")
    assert (ended.code, ended.out) == (0, "")
    assert "no tool has the tag none and such; tags are not used here" in ended.err


def test_an_older_version_in_the_same_bundle_is_nothing_to_warn_about(said):
    tools = [make("hello", version="1.0.0"), make("hello", version="2.0.0"), make("hello", "user")]
    told = said(check_tools, *tools, names=["project/hello"], strict=False)
    assert "hides user/hello@1.0.0; call that one by its address" in told
    assert told.count(" hides ") == 1


@pytest.mark.parametrize("hostile", ["\x1b[2J", "x\ny", "\u202e"])
def test_hostile_texts_of_an_author_stay_in_their_line(said, hostile):
    tool = make(
        metadata={hostile: hostile, "author": [hostile]},
        tags=(hostile,),
        category=hostile,
        documentation=hostile,
        examples=({hostile: hostile},),
        config={hostile: hostile},
        executor=hostile,
        tool_type=hostile,
        hosts=(hostile,),
        warnings=(hostile,),
    )
    plain = said(show, make(metadata={"a": "a", "author": ["a"]}, config={"a": "a"}, warnings=("a",)))
    text = said(show, tool)
    assert "\x1b" not in text
    assert "\u202e" not in text
    labels = [line.partition(":")[0] for line in text.splitlines()]
    assert set(labels) - {line.partition(":")[0] for line in plain.splitlines()} <= {
        *("category", "tags", "reaches", "documentation", "example"),
    }
