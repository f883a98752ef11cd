from __future__ import annotations

from pathlib import Path

import pytest

from toolcrib import Crib, Kind, ToolError
from toolcrib.features.python_files.program_format import ProgramOrPlainFile, PythonProgram
from toolcrib.model.tool import Chained, Convention

PATH = Path("tools/words.py")
PROGRAM = '''"""Show words."""
import argparse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("word")
    print(parser.parse_args().word)


if __name__ == "__main__":
    main()
'''
NAMED = "\n\ndef {name}(text: str) -> str:\n    'Say it.'\n    return text\n"


def test_a_program_takes_its_options():
    [tool] = PythonProgram().read(PATH, PROGRAM.encode())
    assert (tool.name, tool.description, list(tool.parameters["properties"])) == ("words", "Show words.", ["word"])
    assert isinstance(tool.run, Chained)
    assert tool.run.script.convention is Convention.ARGV


@pytest.mark.parametrize("more", [NAMED.format(name="words"), NAMED.format(name="run"), '\n__tools__ = ["main"]\n'])
def test_functions_that_are_meant_win_over_the_program(more):
    assert PythonProgram().read(PATH, (PROGRAM + more).encode()) == []
    [tool] = ProgramOrPlainFile().read(PATH, (PROGRAM + more).encode())
    script = tool.run.script if isinstance(tool.run, Chained) else tool.run
    assert script.entry in {"words", "run", "main"}


def test_a_function_of_another_name_does_not_win():
    [tool] = ProgramOrPlainFile().read(PATH, (PROGRAM + NAMED.format(name="other")).encode())
    assert tool.run.script.convention is Convention.ARGV


def test_options_that_only_running_would_tell_are_a_problem_with_its_line():
    code = PROGRAM.replace('"word"', "WORD").encode()
    with pytest.raises(ToolError) as caught:
        PythonProgram().read(PATH, code)
    assert caught.value.kind is Kind.VALIDATION
    assert caught.value.message.startswith(f"{PATH}:7: ")


async def test_a_plain_file_that_only_speaks_of_a_click_is_a_plain_file(project):
    (project / "tools" / "press.py").write_text(
        "def press(times: int) -> int:\n    'Count a click.'\n    return times\n"
    )
    async with Crib(project) as crib:
        assert not crib.problems
        assert (await crib.call("press", times=2)).value == 2


@pytest.mark.parametrize(
    ("code", "cure"),
    [
        (
            "open('data.csv')",
            "a relative path starts at the folder of the tool; files of the project are below $TOOLCRIB_WORKSPACE",
        ),
        (
            "import no_such_module",
            "declare its package in a block '# /// script' of the file, then run: crib prepare words",
        ),
    ],
)
async def test_a_program_that_misses_something_is_told_what_helps(project, code, cure):
    (project / "tools" / "words.py").write_text(PROGRAM.replace("    print(", f"    {code}\n    print("))
    async with Crib(project) as crib:
        error = (await crib.call("words", word="a")).error
    assert error.message.startswith("words ended with exit code 1: Traceback")
    assert error.cure.operator.startswith(cure)


async def test_the_name_of_a_function_leads_to_the_tool_that_it_is(project):
    (project / "tools" / "weather.py").write_text(NAMED.format(name="forecast"))
    async with Crib(project) as crib:
        error = (await crib.call("forecast", text="a")).error
    assert error.message == "Tool 'forecast' not found; a tool has the name of its file, so forecast is called weather"
