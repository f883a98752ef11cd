"""Environment variables that files read: `crib add` names those that are missing, and a grant hands them over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolcrib import Crib, Tool, ToolError
from toolcrib.lib.environment_reads import needed_variables
from toolcrib.model.tool import Handler

VALUE = "shop-4c1f09ab77"
PYTHON = '''import os


def price(item: str) -> str:
    """Tell a price."""
    return f"{item} {len(os.environ['SHOP_KEY'])} {os.environ.get('CURRENCY', 'EUR')} {os.environ.get('OTHER', '-')}"
'''
BASH = '#!/usr/bin/env bash\n# Tell the length of the key.\n: "${SHOP_KEY:?}"\necho "${#SHOP_KEY} ${OTHER:--}"\n'
NODE = "export function price() {\n  return `${process.env.SHOP_KEY}`.length;\n}\n"
CURE = (
    "the variable or secret SHOP_KEY; set it, or run: crib secret set SHOP_KEY; "
    'and add "price:SHOP_KEY" to access.variables in toolcrib.toml'
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "tools").mkdir(parents=True)
    (folder / "toolcrib.toml").write_text("")
    return folder


@pytest.mark.parametrize(("name", "code"), [("price.py", PYTHON), ("price.sh", BASH), ("price.mjs", NODE)])
def test_adding_a_file_names_the_variable_that_is_not_granted(project, tmp_path, cli, name, code):
    (tmp_path / name).write_text(code)
    added = cli("add", "-C", str(project), str(tmp_path / name))
    assert added.code == 0
    out = added.out
    assert CURE in out
    assert "nothing is missing" not in out
    assert "CURRENCY" not in out


@pytest.mark.parametrize(
    ("name", "code", "value"), [("price.py", PYTHON, f"tea {len(VALUE)} EUR -"), ("price.sh", BASH, f"{len(VALUE)} -")]
)
def test_the_cure_helps_and_hands_over_no_other_variable(project, name, code, value):
    (project / "tools" / name).write_text(code)
    settings = {
        "grants": {"price": ["shell.execute"]},
        "access": {"variables": ["price:SHOP_KEY", "price:UNREAD", "another:OTHER"]},
    }
    arguments = {"item": "tea"} if name == "price.py" else {}
    with Crib(
        project, **settings, environment={"SHOP_KEY": VALUE, "OTHER": "no", "UNREAD": "no", "PATH": "/usr/bin:/bin"}
    ) as crib:
        tool = crib.find("price")
        assert tool is not None
        assert not crib.missing(tool.tool)
        assert crib.call_sync("price", **arguments).value == value


def test_a_call_that_fails_for_want_of_a_variable_says_how_it_is_granted(project):
    (project / "tools" / "price.py").write_text(PYTHON)
    with Crib(project) as crib:
        error = crib.call_sync("price", item="tea").error
    assert error is not None
    assert error.kind == "CAPABILITY_MISSING"
    assert error.message == (
        "price reads the variable SHOP_KEY, which is not set or not granted to it; "
        "set it and add 'price:SHOP_KEY' to access.variables in toolcrib.toml"
    )


def test_a_key_error_of_anything_else_stays_what_it_is(project):
    (project / "tools" / "price.py").write_text(PYTHON + "\n\ndef other() -> str:\n    return {}['HOME']\n")
    (project / "tools" / "other.py").write_text("def other() -> str:\n    'Fail.'\n    return {}['SHOP_KEY']\n")
    with Crib(project) as crib:
        error = crib.call_sync("other").error
    assert error is not None
    assert "access.variables" not in error.message


def test_what_was_granted_is_masked_in_errors_output_and_log(project, caplog):
    code = "import os, sys\n\ndef price() -> str:\n    'Fail.'\n    print(os.environ['SHOP_KEY'])\n    raise RuntimeError(os.environ['SHOP_KEY'])\n"
    (project / "tools" / "price.py").write_text(code)
    with Crib(project, access={"variables": ["price:SHOP_KEY"]}, environment={"SHOP_KEY": VALUE}) as crib:
        result = crib.call_sync("price")
    assert result.error is not None
    assert result.error.message.startswith("price failed (RuntimeError): ")
    assert "Traceback" in caplog.text
    assert VALUE not in repr(result) + caplog.text


HANDLERS = {
    "python": """import os


def execute(args, context):
    print(os.environ['SHOP_KEY'])
    if args.get("fail"):
        raise RuntimeError(os.environ['SHOP_KEY'])
    return {"ok": True, "data": {"length": len(os.environ["SHOP_KEY"]), "other": os.environ.get("OTHER") or None}}
""",
    "javascript": """export async function execute({ args }) {
  console.log(process.env.SHOP_KEY);
  if (args.fail) throw new Error(process.env.SHOP_KEY);
  return { ok: true, data: { length: `${process.env.SHOP_KEY}`.length, other: process.env.OTHER ?? null } };
}
""",
}


def handler(language: str, folder: Path) -> Tool:
    name = {"python": "handler.py", "javascript": "handler.js"}[language]
    code = HANDLERS[language]
    (folder / "price").mkdir(parents=True, exist_ok=True)
    (folder / "price" / name).write_text(code)
    run = Handler(root=folder, folder="price", language=language, files={f"price/{name}": code.encode()})
    return Tool(name="price", description="Tell a price.", parameters={"type": "object"}, run=run)


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_a_handler_gets_what_was_granted_to_it_and_nothing_else(project, language, caplog):
    tool = handler(language, project / "tools")
    environment = {"SHOP_KEY": VALUE, "OTHER": "no", "PATH": os.environ["PATH"]}
    with Crib(project, tools=[tool], environment=environment) as crib:
        (missing,) = crib.missing(tool)
        assert missing == CURE
    access = {"variables": ["price:SHOP_KEY", "price:UNREAD", "another:OTHER"]}
    with Crib(project, tools=[tool], access=access, environment=environment) as crib:
        assert not crib.missing(tool)
        assert crib.call_sync("price").value == {"length": len(VALUE), "other": None}
        failed = crib.call_sync("price", fail=True)
    assert failed.error is not None
    assert VALUE not in repr(failed) + caplog.text


def test_a_warm_handler_sees_a_secret_that_was_changed(project):
    tool = handler("javascript", project / "tools")
    access = {"variables": ["price:SHOP_KEY"]}
    with Crib(project, tools=[tool], access=access, environment={"PATH": os.environ["PATH"]}) as crib:
        for value in ("first-3f1c", "second-90ab-7d"):
            crib.secrets.set("SHOP_KEY", value)
            for _ in range(2):
                assert crib.call_sync("price").value == {"length": len(value), "other": None}


SINK = """
__tool_type__ = "runtime"
__version__ = "1.0.0"
__executor_id__ = "python"
__category__ = "sinks"
__tool_description__ = "Keep events"
__config__ = {"path": "events.txt", "prefix": "${SHOP_KEY}:{name}"}

import os


class PriceSink:
    def __init__(self, path: str, prefix: str = ""):
        self.path, self.prefix = path, prefix

    async def write(self, event: str) -> None:
        with open(self.path, "a") as file:
            file.write(f"{self.prefix} {os.environ.get('OTHER', '-')} {os.environ['SHOP_KEY']} {event}\\n")
        if event == "fail":
            raise RuntimeError(os.environ["SHOP_KEY"])
"""


async def test_a_sink_gets_what_was_granted_to_it_in_its_config_and_its_environment(project):
    path = project / ".ai" / "tools" / "sinks" / "price-sink.py"
    path.parent.mkdir(parents=True)
    path.write_text(SINK)
    environment = {"SHOP_KEY": VALUE, "OTHER": "no"}
    async with Crib(project, environment=environment) as crib:
        with pytest.raises(ToolError, match="price-sink asks for the host's variable SHOP_KEY, which is not granted"):
            async with crib.sink("price-sink"):
                pass
    async with Crib(project, access={"variables": ["price-sink:SHOP_KEY"]}, environment=environment) as crib:
        async with crib.sink("price-sink") as sink:
            await sink.write("tea")
        assert (project / "events.txt").read_text() == f"{VALUE}:{{name}} - {VALUE} tea\n"
        with pytest.raises(ToolError, match="event 1 failed") as caught:
            async with crib.sink("price-sink") as sink:
                await sink.write("fail")
        assert VALUE not in repr(caught.value)


@pytest.mark.parametrize(
    ("language", "code", "needed"),
    [
        ("python", "import os\nos.environ['A']\nos.getenv('B')\nos.environ.get('C')", ("A", "B", "C")),
        ("python", "from os import environ as e, getenv\ne['A']\ngetenv('B')", ("A", "B")),
        ("python", "import os\nos.getenv('A', 'x')\nos.getenv('B') or 'x'\nif os.getenv('C'): pass", ()),
        ("python", "import os\ntry:\n    os.environ['A']\nexcept KeyError: pass\nif 'B' in os.environ: os.environ['B']", ()),
        ("python", "import os\nos.environ['A'] = 'x'\nos.environ['A']\nos.environ[name]\nmine.environ['B']", ()),
        ("python", "environ = {}\nenviron['A']\n# os.environ['B']\n'os.environ[\"C\"]'", ()),
        ("python", "import os\nos.environ['\\n'] + os.environ['A B'] + os.environ['" + "X" * 500 + "']", ()),
        ("python", "import os\nos.environ['A'", ()),
        ("javascript", "const a = process.env.A, b = f(process.env['B']);", ("A", "B")),
        ("javascript", "process.env.A || 1; process.env.B ?? 1; if (process.env.C) {} process.env.D = 1; !process.env.E", ()),
        ("javascript", "// process.env.A\nconst b = 'process.env.B'; mine.process.env.C; process.env[name]", ()),
        ("javascript", "process.env.", ()),
        ("bash", ': "${A:?}" ${B?say so}\necho $C', ("A", "B")),
        ("bash", "A=1\necho ${A:?}\n# ${B:?}\nread -r C\necho ${C:?} ${1:?} ${D:-x}", ()),
        ("bash", "${" * 50_000, ()),
        ("python", "import os\n" + "(" * 5_000 + "os.environ['A']" + ")" * 5_000, ()),
    ],
)  # fmt: skip
def test_only_what_a_file_certainly_needs_is_named(language, code, needed):
    assert needed_variables(code.encode(), language) == needed
