"""Which files of a project a tool imports: those of its own origin, after everything installed."""

import shutil
from pathlib import Path

import pytest

from toolcrib import Crib

HELPER = '"""Help."""\ndef helper() -> int:\n    """Help."""\n    return 1\n'
REPORT = '"""Report."""\nimport helper\n\ndef report() -> int:\n    """Report."""\n    return helper.helper()\n'


def write(root: Path, **files: str) -> None:
    (root / "tools").mkdir(exist_ok=True)
    (root / "toolcrib.toml").touch()
    for name, text in files.items():
        (root / "tools" / f"{name}.py").write_text(text)


async def test_a_disabled_tool_is_imported_by_none_until_it_is_enabled_again(tmp_path):
    write(tmp_path, helper=HELPER, report=REPORT)
    async with Crib(tmp_path) as crib:
        assert (await crib.call("report")).value == 1
        crib.switch_tool("helper", on=False)
        error = (await crib.call("report")).error
        assert error.reason == (
            "report may not import helper.py: its tool is disabled, or was pulled or built and keeps its files"
        )
        assert error.cure.operator == "enable that tool, or put what is needed into a file of your own"
        crib.switch_tool("helper", on=True)
        assert (await crib.call("report")).value == 1
        (tmp_path / "toolcrib.toml").write_text('catalog.disabled = ["helper"]')
    async with Crib(tmp_path) as crib:
        assert (await crib.call("report")).error.reason == error.reason


async def test_code_that_puts_its_folder_first_reads_no_disabled_tool_either(tmp_path):
    first = "import sys\nsys.path.insert(0, __file__.rpartition('/')[0])\n"
    write(tmp_path, idna=HELPER.replace("helper", "idna"), report=first + REPORT.replace("helper", "idna"))
    async with Crib(tmp_path) as crib:
        assert (await crib.call("report")).value == 1
        crib.switch_tool("idna", on=False)
        assert "PermissionError" in (await crib.call("report")).error.message


PROGRAM = """\
import colorsys, os, sys
import helper
print(hasattr(colorsys, "STOLEN"), helper.helper(), sys.argv, os.path.basename(__file__), __name__)
"""
DOCUMENT = """\
tool_id: started
tool_type: script
version: 1.0.0
category: ops
description: Start it.
executor_id: subprocess
requires: [shell.execute]
config: {command: python, args: [%s]}
"""


async def test_a_program_that_a_command_starts_finds_what_is_installed_first(tmp_path):
    folder = tmp_path / ".ai" / "tools" / "ops"
    folder.mkdir(parents=True)
    (tmp_path / "toolcrib.toml").touch()
    (folder / "program.py").write_text(PROGRAM)
    (folder / "helper.py").write_text(HELPER)
    (folder / "colorsys.py").write_text("STOLEN = True\n")
    for words in ("program.py, -c", "-X, utf8, program.py, -c"):
        (folder / "started.yaml").write_text(DOCUMENT % words)
        async with Crib(tmp_path, grants={"started": ["shell.execute"]}) as crib:
            result = await crib.call("started")
        assert result.value == "False 1 ['program.py', '-c'] program.py __main__", result.error
    (folder / "started.yaml").write_text(DOCUMENT % "-c, 'import sys; print(sys.argv)', program.py")
    async with Crib(tmp_path, grants={"started": ["shell.execute"]}) as crib:
        assert (await crib.call("started")).value == "['-c', 'program.py']"


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node here")
async def test_a_disabled_file_of_javascript_is_not_required(tmp_path):
    write(tmp_path)
    (tmp_path / "tools" / "rates.js").write_text(
        "/** Rates. */\nfunction rates() { return 2; }\nmodule.exports = { rates };\n"
    )
    (tmp_path / "tools" / "pay.js").write_text(
        "/** Pay. */\nfunction pay() { return require('./rates').rates(); }\nmodule.exports = { pay };\n"
    )
    async with Crib(tmp_path) as crib:
        result = await crib.call("pay")
        assert result.value == 2, result.error
        crib.switch_tool("rates", on=False)
        assert "EACCES" in str((await crib.call("pay")).error)


def test_a_file_whose_name_is_that_of_a_module_is_told(tmp_path):
    write(tmp_path, csv=HELPER.replace("helper", "csv"), orjson=HELPER.replace("helper", "orjson"), helper=HELPER)
    with Crib(tmp_path) as crib:
        told = {tool.name: crib.warnings(tool) for tool in crib.tools}
    assert told["csv"] == [
        "tools/csv.py: 'import csv' in another file finds the module of Python or of a package; rename the file if it is meant"
    ]
    assert len(told["orjson"]) == 1
    assert told["helper"] == []
