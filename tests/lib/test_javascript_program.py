"""What a JavaScript or TypeScript file says about how it is used, read off its text."""

from contextlib import suppress

import pytest

from toolcrib import ToolError
from toolcrib.lib.command_line import command_words
from toolcrib.lib.javascript_program import needed_packages, read_javascript_program


def read(text):
    return read_javascript_program(text, "tool", "tool.js")


def shape(text):
    return [(one.name, one.option, one.takes, one.required) for one in read(text).line.parameters]


def properties(text):
    schema = read(text).signature.schema
    return schema["properties"], schema["required"]


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("export function main(a) {}", "main"),
        ("export const main = async (a) => a", "main"),
        ("export default async function (a) { return a }", "default"),
        ("const add = (a) => a\nexport { add as default }", "default"),
        ("export default (a) => a", "default"),
        ("module.exports = function (a) { return a }", "default"),
        ("module.exports = { main: (a) => a }", "main"),
        ("module.exports = { helper: 1, async main(a) { return a } }", "main"),
        ("function main(a) {}\nmodule.exports.main = main", "main"),
        ("exports.tool = (a) => a\nexports.other = () => 1", "tool"),
        ("export function only(a) {}\nconst x = 1", "only"),
        ("export function main(a: number): Promise<{ x: number }> { return a }", "main"),
        (
            "function main(name) {}\nif (require.main === module) { main(process.argv[2]) }\nmodule.exports = { main }",
            "main",
        ),
        ("const x = await load()\nexport function main(a) { return x }", "main"),
    ],
)
def test_an_exported_function_is_called(text, entry):
    program = read(text)
    assert (program.entry, program.problem) == (entry, "")
    assert program.signature is not None


@pytest.mark.parametrize(
    "text",
    [
        "console.log(process.argv[2])",
        "main()\nfunction main() {}\nmodule.exports = { main }",
        "const a = 1\nawait run(a)\nexport function main() {}",
        "function main() { console.log(process.argv[2]) }\nif (require.main === module) main()\nmodule.exports = { main }",
    ],
)
def test_a_file_that_runs_by_itself_is_a_program(text):
    assert read(text).line is not None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("function a(x) { return x }", "it runs nothing and exports nothing; write export before function a"),
        ("export function a() {}\nexport function b() {}", "which function is the tool? it exports a, b;"),
        ("export const limit = 3", "it runs nothing and exports no function"),
        ("export function main(x: Buffer) {}", "main takes a Buffer, which no JSON makes"),
        ("export { main } from './other.js'", "what main is cannot be seen here"),
    ],
)
def test_a_file_that_offers_nothing_to_call_says_so(text, problem):
    assert read(text).problem.startswith(problem)


@pytest.mark.parametrize(
    ("text", "expected", "required"),
    [
        ("export function main(a, b = 3) {}", {"a": {}, "b": {"type": "number", "default": 3}}, ["a"]),
        ("export function main({ a, b = 'x' }) {}", {"a": {}, "b": {"type": "string", "default": "x"}}, ["a"]),
        ("export function main(args) { return args.a + (args.b ?? 1) }", {"a": {}, "b": {}}, ["a"]),
        ("export function main(args) { const { a, b = 1 } = args }", {"a": {}, "b": {}}, ["a"]),
        ("export function main(text) { return text.length + text.trim() }", {"text": {}}, ["text"]),
        (
            "interface In { a: string; b?: number\n c: 'x' | 'y' }\nexport function main(input: In) {}",
            {"a": {"type": "string"}, "b": {"type": "number"}, "c": {"type": "string", "enum": ["x", "y"]}},
            ["a", "c"],
        ),
        (
            "/**\n * @param {string} a - First\n * @param {number[]} [b] Second\n */\nexport function main(a, b) {}",
            {
                "a": {"type": "string", "description": "First"},
                "b": {"type": "array", "items": {"type": "number"}, "description": "Second"},
            },
            ["a"],
        ),
        ("export function main(...words: string[]) {}", {"words": {"type": "array", "items": {"type": "string"}}}, []),
    ],
)
def test_the_arguments_of_a_function_are_those_of_its_signature(text, expected, required):
    assert properties(text) == (expected, required)


def test_a_date_is_made_before_the_function_gets_it():
    assert read("export function main(when: Date, n: bigint) {}").signature.revive == {"when": "date", "n": "bigint"}


PARSE_ARGS = """import { parseArgs } from 'node:util';
const { values, positionals } = parseArgs({
  options: { name: { type: 'string', short: 'n' }, loud: { type: 'boolean' }, tag: { type: 'string', multiple: true } },
  allowPositionals: true,
});
console.log(values.name);
"""
COMMANDER = """const { program } = require('commander');
program.argument('<file>').option('-t, --times <n>', 'how often', parseInt).option('--no-color').requiredOption('--to-dir <d>', 'x');
program.parse();
"""
YARGS = """import yargs from 'yargs';
const argv = yargs(process.argv.slice(2))
  .option('name', { type: 'string', demandOption: true })
  .option('verbose', { type: 'boolean' })
  .option('level', { choices: ['low', 'high'] })
  .argv;
console.log(argv.name);
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            PARSE_ARGS,
            [
                ("name", "--name", "value", False),
                ("loud", "--loud", "flag", False),
                ("tag", "--tag", "repeat", False),
                ("args", "", "spread", False),
            ],
        ),
        (
            COMMANDER,
            [
                ("times", "--times", "value", False),
                ("color", "--", "flag", False),
                ("toDir", "--to-dir", "value", True),
                ("file", "", "value", True),
            ],
        ),
        (
            YARGS,
            [
                ("name", "--name", "value", True),
                ("verbose", "--verbose", "flag", False),
                ("level", "--level", "value", False),
            ],
        ),
        (
            "const [, , a, b = '1'] = process.argv\nconsole.log(a)",
            [("a", "", "value", True), ("b", "", "value", False)],
        ),
        (
            "const a = Number(process.argv[2])\nconsole.log(a, process.argv[3] || 'x')",
            [("a", "", "value", True), ("arg2", "", "value", False)],
        ),
        (
            "const args = process.argv.slice(2)\nconst name = args[0] || 'you'\nconsole.log(name)",
            [("name", "", "value", False)],
        ),
        (
            "const n = process.argv[process.argv.indexOf('--name') + 1]\nconsole.log(n)",
            [("name", "--name", "value", False)],
        ),
        ("console.log(process.argv.includes('--loud'))", [("loud", "--loud", "flag", False)]),
        ("console.log(process.argv.slice(2).join(' '))", [("args", "", "spread", False)]),
        (
            "function greet(name, n) {}\ngreet(process.argv[2], process.argv[3])",
            [("name", "", "value", True), ("n", "", "value", True)],
        ),
    ],
)
def test_options_and_words_are_those_that_the_program_reads(text, expected):
    assert shape(text) == expected


def test_sub_commands_are_actions():
    text = """const { Command } = require('commander');
const program = new Command();
program.command('add <a> <b>').description('Add').option('-r, --round').action(() => {});
program.command('list').action(() => {});
program.parse();
"""
    line = read(text).line
    assert {name: (part.before, part.names) for name, part in line.actions.items()} == {
        "add": (("add",), ("round", "a", "b")),
        "list": (("list",), ()),
    }


@pytest.mark.parametrize("text", ["process.stdin.on('data', console.log)", "console.log(fs.readFileSync(0, 'utf8'))"])
def test_standard_input_is_an_argument(text):
    assert read(text).line.stdin == "stdin"


def test_options_stand_before_words_and_a_dashed_word_behind_their_end():
    config = read(PARSE_ARGS).line.to_config()
    given = {"name": "-x", "loud": True, "tag": ["a", "b"], "args": ["-y"]}
    expected = ("--name=-x", "--loud", "--tag", "a", "--tag", "b", "--", "-y")
    assert command_words(config, given).words == expected
    assert command_words(read(COMMANDER).line.to_config(), {"color": False}).words == ("--no-color",)


@pytest.mark.parametrize("text", ["export function main(a {", "foo(]", "}" * 10])
def test_brackets_that_do_not_match_are_refused_with_their_line(text):
    with pytest.raises(ToolError, match=r"^tool\.js:1: .*; correct the line$"):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100 + ")" * 100,
        "a;" * 60_000,
        "`${" * 30_000,
        "/" * 100_000,
        "'" * 100_000,
        "process.argv[2];" * 10_000,
        "const a = " * 12_000,
        "export function f(a) {}\n" * 5_000,
        "x.option('a', {})." * 8_000 + "require('commander')",
        "/* " * 50_000,
        "interface A { b: " * 150 + "}" * 150,
        "type A = A\nexport function main(a: A) {}",
        "a => " * 40_000,
    ],
)
def test_a_hostile_file_costs_little(text):
    with suppress(ToolError):
        read(text[:256_000])


SEVERAL = """
/** Celsius to Fahrenheit. */
export function toFahrenheit(celsius) { return celsius * 1.8 + 32 }
/** Kilometres to miles. */
export const toMiles = (km, digits = 2) => km
export const VERSION = '1'
export function half(x) { return x / 2 }
"""


def test_the_functions_that_a_file_lists_are_its_tools():
    program = read_javascript_program(f"{SEVERAL}\nexport const __tools__ = ['half', 'toMiles']", "units", "units.mjs")
    assert list(program.functions) == ["half", "toMiles"]
    assert program.warnings == ()
    assert program.functions["toMiles"].signature.schema["properties"].keys() == {"km", "digits"}


@pytest.mark.parametrize(
    "text",
    ["exports.__tools__ = ['a']", "module.exports.__tools__ = ['a']", "module.exports = { a, __tools__: ['a'] }"],
)
def test_a_list_of_tools_is_read_in_every_form_of_an_export(text):
    code = f"function a(x) {{ return x }}\nfunction b(x) {{ return x }}\nexports.a = a\nexports.b = b\n{text}"
    assert list(read_javascript_program(code, "letters", "letters.cjs").functions) == ["a"]


def test_exported_functions_with_a_comment_are_taken_for_tools_with_a_warning():
    program = read_javascript_program(SEVERAL, "units", "units.mjs")
    assert {name: part.summary for name, part in program.functions.items()} == {
        "toFahrenheit": "Celsius to Fahrenheit.",
        "toMiles": "Kilometres to miles.",
    }
    assert program.warnings == (
        (3, "toFahrenheit, toMiles are taken for tools; say so: export const __tools__ = ['toFahrenheit', 'toMiles']"),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "export const __tools__ = names",
            "__tools__: write a list of the names of exported functions, such as ['a', 'b']",
        ),
        ("export const __tools__ = ['c']", "__tools__: c is not a function that this file exports; it exports a, b"),
        (
            "",
            "which function is the tool? it exports a, b; call one of them main, export it as the default, or list them in __tools__",
        ),
    ],
)
def test_a_list_of_tools_that_cannot_be_meant_is_refused(text, problem):
    code = f"export function a() {{}}\nexport function b() {{}}\n{text}"
    assert read_javascript_program(code, "letters", "letters.mjs").problem == problem


def test_a_function_that_answers_through_a_callback_is_refused():
    program = read_javascript_program("module.exports = function (a, b, callback) { callback(null, a + b) }", "sum")
    assert "answers by calling callback" in program.problem
    kept = read_javascript_program("module.exports = function (step, next) { return step + next }", "sum")
    assert kept.problem == ""


DECLARED = """
module.exports = {
  name: "word_count",
  description: "Count words",
  parameters: { type: "object", properties: { text: { type: "string", minLength: 1 } }, required: ["text"] },
  execute: async ({ text }) => text.length,
};
"""


def test_what_a_file_exports_beside_its_function_describes_it():
    program = read_javascript_program(DECLARED, "word-count", "word-count.cjs")
    assert program.summary == "Count words"
    assert program.signature.schema["properties"] == {"text": {"type": "string", "minLength": 1}}
    assert program.warnings == ()


def test_a_name_that_is_not_that_of_the_file_is_a_warning():
    [(line, text)] = read_javascript_program(DECLARED, "counter", "counter.cjs").warnings
    assert (line, text) == (1, "a tool has the name of its file; rename the file if word_count is meant")


@pytest.mark.parametrize("schema", ["z.object({})", "{ type: 'string' }", "{ type: 'object' }", "make()", "null"])
def test_a_schema_that_is_no_literal_of_one_leaves_the_signature(schema):
    code = f"export const inputSchema = {schema};\nexport function main(a) {{ return a; }}"
    assert set(read_javascript_program(code, "a", "a.mjs").signature.schema["properties"]) == {"a"}


def test_a_schema_whose_names_the_function_does_not_take_is_not_believed():
    code = "export const parameters = {type: 'object', properties: {x: {}}};\nexport function main(a, b) { return a; }"
    assert set(read_javascript_program(code, "a", "a.mjs").signature.schema["properties"]) == {"a", "b"}


def test_the_values_of_an_enum_of_the_file_are_what_is_accepted():
    code = "enum Level { Low, Mid = 5, High }\nexport enum Rate { Full = 'full', Half = 'half' }\n"
    code += "export function main(level: Level, rate: Rate): number { return 1 }"
    program = read_javascript_program(code, "tool", "tool.ts")
    assert program.signature is not None
    properties = program.signature.schema["properties"]
    assert properties["level"] == {"enum": [0, 5, 6]}
    assert properties["rate"] == {"type": "string", "enum": ["full", "half"]}
    assert program.signature.warnings == ()


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("enum Size { A = 1 << 2 }\n", "Size"),
        ("import { Size } from './sizes.ts';\n", "Size"),
    ],
)
def test_a_type_that_only_running_code_knows_is_named_in_a_warning(code, name):
    program = read_javascript_program(f"{code}export function main(size: Size) {{ return size }}", "tool", "tool.ts")
    assert program.signature is not None
    assert program.signature.schema["properties"] == {"size": {}}
    (warning,) = program.signature.warnings
    assert warning.startswith(f"the type {name} is not defined in this file, so any value is accepted for it")


@pytest.mark.parametrize(
    ("code", "packages"),
    [
        ("const { program } = require('commander'); require('node:fs'); require('./near'); require('path')", ["commander"]),
        ("import a from '@scope/one/deep'; import 'two'; import type { T } from 'three'; import fs from 'fs'", ["@scope/one", "two"]),
        ("import type from 'four'; import { x } from '#own'; import y from '/abs'", ["four"]),
        ("let a; try { a = require('five') } catch { a = null }\nconst b = 'six'; const c = from('seven')", []),
        ("import {", []),
    ],
)  # fmt: skip
def test_only_packages_that_a_file_cannot_do_without_are_needed(code, packages):
    assert list(needed_packages(code)) == packages


def test_options_and_words_that_are_made_as_objects_are_read():
    line = read(
        """
        const { program, Option, Argument } = require('commander');
        program.addArgument(new Argument('<city>', 'where').choices(['Bonn', 'Ulm']))
          .addOption(new Option('-s, --size <size>', 'how big').choices(['small', 'large']).default('small'))
          .addOption(new Option('-k, --key <key>').makeOptionMandatory())
          .parse();
        """
    ).line
    assert line.to_schema() == {
        "type": "object",
        "properties": {
            "size": {"enum": ["small", "large"], "description": "how big", "default": "small"},
            "key": {"type": ["string", "number"]},
            "city": {"enum": ["Bonn", "Ulm"], "description": "where"},
        },
        "required": ["key", "city"],
        "additionalProperties": False,
    }
    words = command_words(line.to_config(), {"city": "Ulm", "size": "large", "key": "k"}).words
    assert words == ("--size", "large", "--key", "k", "Ulm")
