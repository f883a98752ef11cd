"""Programs that lie in a folder of tools, through the whole pipeline."""

import pytest

from toolcrib import Crib, Kind, ToolError
from toolcrib.infra.programs.node_runtime import type_options
from toolcrib.model.tool import Script


@pytest.fixture
def write(project):
    (project / "toolcrib.toml").write_text('[grants]\n"*" = ["shell.execute"]\n')

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
    (project / "toolcrib.toml").write_text('[grants]\n"*" = ["shell.execute"]\n')
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


async def test_what_an_exported_function_returns_is_the_value(write, call):
    write("add.js", "export async function add(a, b = 3) { console.log('noise'); return { sum: a + b } }\n")
    assert await call("add", a=2) == {"sum": 5}
    write("greet.cjs", "module.exports = { main: ({ name }) => `Hi ${name}` };\n")
    assert await call("greet", name="Ann") == "Hi Ann"


async def test_a_function_that_returns_nothing_is_what_it_prints(write, call):
    write("say.js", "export function main(name) { console.log(`Hi ${name}`) }\n")
    assert await call("say", name="Ann") == "Hi Ann"


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (
            "return { a: [NaN] }",
            Kind.OUTPUT_INVALID,
            "tell: the result.a[0] is NaN, which has no JSON form; return plain values",
        ),
        (
            "return () => 1",
            Kind.OUTPUT_INVALID,
            "tell: the result is a function, which has no JSON form; return plain values",
        ),
        (
            "const a = {}; a.b = a; return a",
            Kind.OUTPUT_INVALID,
            "tell: the result.b holds itself, which has no JSON form; return plain values",
        ),
        (
            "throw new TypeError('secret')",
            Kind.INTERNAL,
            "tell failed with TypeError: secret",
        ),
        ("process.exit(3)", Kind.PERMANENT, "tell ended with exit code 3 before main returned"),
    ],
)
async def test_a_function_that_gives_no_value_is_a_failure(project, write, code, kind, message):
    write("tell.js", f"export async function main() {{ {code} }}\n")
    error = await refused(project, "tell")
    assert (error.kind, error.message) == (kind, message)


async def test_values_leave_a_function_in_their_json_form(write, call):
    code = "return { d: new Date(0), s: new Set([1]), m: new Map([['a', 1n]]), b: Buffer.from('x'), u: undefined }"
    write("give.mjs", f"export default function () {{ {code} }}\n")
    assert await call("give") == {"d": "1970-01-01T00:00:00.000Z", "s": [1], "m": {"a": 1}, "b": "eA=="}


async def test_a_generator_is_the_list_of_what_it_yields(write, call):
    write("count.js", "export async function* count(n) { for (let i = 0; i < n; i++) yield i }\n")
    assert await call("count", n=3) == [0, 1, 2]


async def test_typescript_runs_where_node_strips_types(write, call):
    write(
        "area.ts",
        "enum Unit { M = 'm', Km = 'km' }\n"
        "interface Input { width: number; height?: number }\n"
        "export function area(input: Input): { area: number; unit: Unit } {\n"
        "  return { area: input.width * (input.height ?? 1), unit: Unit.M };\n"
        "}\n",
    )
    assert await call("area", width=2, height=3) == {"area": 6, "unit": "m"}


def test_a_node_that_cannot_run_typescript_is_named(tmp_path):
    old = tmp_path / "node"
    old.write_bytes(b"https://nodejs.org/download/release/v20.19.0/node-v20.19.0.tar.gz")
    script = Script(path=tmp_path / "area.ts", code=b"", language="javascript", entry="area")
    with pytest.raises(ToolError) as caught:
        type_options(script, str(old))
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND
    assert caught.value.message == (
        f"area.ts is TypeScript, which Node runs from 22.6 on, and {old} is 20.19.0; "
        "install a newer Node, or pip install 'toolcrib[node]'"
    )
    old.write_bytes(b"https://nodejs.org/download/release/v22.6.0/node-v22.6.0.tar.gz")
    assert type_options(script, str(old)) == ["--disable-warning=ExperimentalWarning", "--experimental-strip-types"]


async def test_a_program_in_javascript_gets_its_words_and_may_await_at_its_top(write, call):
    write("times.mjs", "const [, , a, b] = process.argv;\nconsole.log(await Promise.resolve(Number(a) * Number(b)));\n")
    assert await call("times", a=3, b=-4) == "-12"
    write("plain.js", "const x = await Promise.resolve(7);\nconsole.log(x);\n")
    assert await call("plain") == "7"


async def test_a_package_that_is_missing_is_named_with_its_command(project, write):
    write("lost.mjs", "import left from 'left-pad-that-is-not-there';\nexport function main() { return left }\n")
    error = await refused(project, "lost")
    assert error.message.endswith("run: npm install left-pad-that-is-not-there")


async def test_a_file_that_offers_nothing_is_reported_with_its_cure(project, write):
    write("helper.js", "function helper(x) { return x }\n")
    async with Crib(project) as crib:
        [problem] = crib.problems
    assert problem.message.endswith(
        "helper.js:1: it runs nothing and exports nothing; write export before function helper"
    )


PROGRAM = """import argparse, json
parser = argparse.ArgumentParser(description="Show words")
sub = parser.add_subparsers(required=True)
show = sub.add_parser("show", help="show a word")
show.add_argument("word")
show.add_argument("--loud", action="store_true")
print(json.dumps(vars(parser.parse_args())))
"""


async def test_sub_commands_of_a_python_program_are_tools(write, call):
    write("words.py", PROGRAM)
    assert await call("words_show", word="-hi", loud=True) == {"word": "-hi", "loud": True}


async def test_a_python_script_with_metadata_gets_its_options(project):
    folder = project / ".ai" / "tools" / "text"
    folder.mkdir(parents=True)
    head = "".join(
        f'__{name}__ = "{value}"\n'
        for name, value in {
            "version": "1.0.0",
            "tool_type": "python",
            "executor_id": "python_runtime",
            "category": "text",
        }.items()
    )
    (folder / "words.py").write_text(f'{head}__tool_description__ = "Show words; fails never"\n{PROGRAM}')
    async with Crib(project) as crib:
        assert not crib.problems
        assert (await crib.call("words-show", word="hi")).value == '{"word": "hi", "loud": false}'


def test_files_that_are_no_tools_are_named_with_the_reason(project, write, cli):
    write("data.json", '{"a": 1}')
    write("request.yaml", "tool_request:\n  name: x\n")
    write("say.sh", "echo hi\n")
    checked = cli("check", "-C", str(project))
    assert checked.code == 0
    said = checked.out
    assert "tools/data.json: it describes no tool; name tool_type and executor_id if it should" in said
    wanted = project / "tools/request.yaml"
    assert f"ignored: tools/request.yaml: it is a request for a tool; submit it: crib request submit {wanted}" in said
    assert "ignored: " in said
    assert "say.sh: it" not in said
