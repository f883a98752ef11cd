"""Programs that lie in a folder of tools, through the whole pipeline."""

import pytest

from toolcrib import Crib, Kind


@pytest.fixture
def write(project):
    (project / "toolcrib.toml").write_text('[access]\ngrants = ["shell.execute"]\n')

    def write(name, text):
        (project / "tools" / name).write_text(text)

    return write


@pytest.fixture
def call(project):
    async def call(name, /, **arguments):
        async with Crib(project) as crib:
            assert not crib.problems
            result = await crib.call(name, **arguments)
            assert result.ok, result.error
            return result.value

    return call


async def refused(project, name, /, **arguments):
    async with Crib(project) as crib:
        return (await crib.call(name, **arguments)).error


async def test_words_in_their_places_add_up(write, call):
    write("add.sh", "#!/bin/bash\n# Add two numbers.\n# Usage: add.sh <a> <b>\necho $(($1 + $2))\n")
    assert await call("add", a=2, b=3) == "5"
    assert await call("add", a=-2, b=3) == "1"


async def test_a_missing_word_is_refused_before_the_program_runs(project, write):
    write("add.sh", "# Usage: add.sh <a> <b>\necho $(($1 + $2))\n")
    assert (await refused(project, "add", a=2)).kind is Kind.VALIDATION
    assert (await refused(project, "add", a="x", b=1)).kind is Kind.VALIDATION


async def test_standard_input_is_what_the_caller_gives(write, call):
    write("upper.sh", "# Upper-case a text.\ntr a-z A-Z\n")
    assert await call("upper", stdin="hello") == "HELLO"
    write("count.sh", "# Count the bytes of a text.\nwc -c\n")
    assert await call("count", stdin="x" * 900_000) == "900000"


async def test_standard_input_that_no_pipe_takes_is_refused(project, write):
    write("upper.sh", "tr a-z A-Z\n")
    error = await refused(project, "upper", stdin="x" * 1_000_001)
    assert "standard input takes 1,000,000 bytes" in error.message


async def test_a_program_without_standard_input_reads_nothing(write, call):
    write("peek.sh", "# Look.\nhead -c 10 <&0\necho end\n")
    assert await call("peek") == "end"


async def test_places_and_standard_input_can_be_declared(write, call):
    head = (
        "# Show them.\n"
        '# args: ["{a}", "{b}"]\n'
        '# stdin: "{text}"\n'
        "# parameters: [{name: a, type: string, required: true}, {name: b, type: string}, {name: text, type: string}]\n"
    )
    write("show.sh", f'{head}echo "$1 $2 $#"; cat\n')
    assert await call("show", a="x", b="y", text="in") == "x y 2\nin"
    assert await call("show", a="x") == "x  1"


async def test_prose_in_the_comment_of_a_program_is_no_metadata(write, call):
    write("say.sh", "#!/bin/bash\n# Say something.\n# version: 2\n# tags: a, b\n# timeout: some time\necho hi\n")
    assert await call("say") == "hi"


async def test_a_program_needs_the_capability_of_its_shell(project, write):
    write("say.sh", "echo hi\n")
    (project / "toolcrib.toml").write_text("")
    assert (await refused(project, "say")).kind is Kind.CAPABILITY_MISSING


async def test_documents_that_describe_no_tool_are_left_alone(project, write):
    write("data.json", '{"a": 1}')
    write("package.json", '{"name": "tool_id"}')
    async with Crib(project) as crib:
        assert crib.find("data") is None
        assert not crib.problems


SCRIPT = """#!/bin/bash
# tool_type: script
# version: 1.0.0
# category: math
# description: Subtract; fails on words
# executor_id: bash
# requires: [shell.execute]
{more}
echo $(($1 - $2))
"""


@pytest.mark.parametrize(
    "more",
    [
        "# parameters: [{name: a, type: integer, required: true}, {name: b, type: integer, required: true}]",
        '# args: ["{a}", "{b}"]\n# parameters: [{name: a, type: integer}, {name: b, type: integer}]',
        "# Usage: sub.sh <a> <b>",
    ],
)
async def test_declared_parameters_of_a_script_are_given_in_their_places(project, more):
    (project / "toolcrib.toml").write_text('[access]\ngrants = ["shell.execute"]\n')
    folder = project / ".ai" / "tools" / "math"
    folder.mkdir(parents=True)
    (folder / "sub.sh").write_text(SCRIPT.format(more=more))
    async with Crib(project) as crib:
        assert (await crib.call("sub", a=5, b=3)).value == "2"


async def test_places_that_nothing_assigns_are_refused_with_the_line_to_write(project):
    folder = project / ".ai" / "tools" / "math"
    folder.mkdir(parents=True)
    more = "# parameters: [{name: a, type: integer}, {name: b, type: integer}, {name: c, type: integer}]"
    (folder / "sub.sh").write_text(SCRIPT.format(more=more))
    async with Crib(project) as crib:
        [problem] = crib.problems
    assert problem.message.endswith(
        'sub.sh:8: # parameters: the file reads its arguments by their places; say which is which: # args: ["{a}", "{b}", "{c}"]'
    )
