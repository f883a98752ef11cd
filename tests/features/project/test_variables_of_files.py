"""Environment variables that files read: `crib add` names those that are missing, and a grant hands them over."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcrib import Crib
from toolcrib.__main__ import main
from toolcrib.lib.environment_reads import needed_variables

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
def test_adding_a_file_names_the_variable_that_is_not_granted(project, tmp_path, capsys, name, code):
    (tmp_path / name).write_text(code)
    assert main(["add", "-C", str(project), str(tmp_path / name)]) == 0
    out = capsys.readouterr().out
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
