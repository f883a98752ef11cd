"""The handler: exactly one, with an `execute` that is found without running anything."""

import pytest

NO_EXPORT = "handler.js:1: exports no `execute`; write `export async function execute({ args, context }) { … }`"
NO_FUNCTION = "handler.py:1: has no function `execute`; write `async def execute(args, context):`"
NOT_TWO = "`execute` must take two arguments; write `async def execute(args, context):`"


@pytest.mark.spec("S2-01", "S2-49")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("schema", "schema.json:1: is missing; write the fields of the tool in it"),
        ("summary", "doc_summary.md:1: is missing; write what a system prompt says of the tool in it"),
        ("doc", "doc.md:1: is missing; write all there is to read about the tool in it"),
        ("js", "handler.js:1: is missing; write it, or handler.py, with an `execute` that runs the tool"),
    ],
)
def test_each_of_the_four_files_that_is_missing_is_named(name, told, faults):
    assert faults(**{name: None}) == [told]


@pytest.mark.spec("S2-01")
def test_all_files_that_are_missing_are_named_at_once(faults):
    assert len(faults(schema=None, summary=None, doc=None)) == 3


@pytest.mark.spec("S2-01")
def test_one_handler_is_enough_and_two_are_too_many(read, faults):
    python = "async def execute(args, context):\n    return {'ok': True}\n"
    assert read(js=None, py=python).tool.run.language == "python"
    assert read().tool.run.language == "javascript"
    assert faults(py=python) == ["handler.py:1: stands beside handler.js; keep one of the two"]


@pytest.mark.parametrize(
    "code",
    [
        "export async function execute({ args, context }) {}",
        "export function execute() {}",
        "export const execute = async ({ args }) => args;",
        "export let a = 1, execute = run;",
        "export var execute;",
        "export const { execute } = make();",
        "export const { run: execute, ...rest } = make();",
        "async function execute() {}\nexport { execute };",
        "export { run as execute };",
        "export { a, run as 'execute' };",
        "export { execute } from './other.js';",
        "export { default as execute } from './other.js';",
        "export * from './other.js';",
        "exports.execute = async ({ args }) => args;",
        "module.exports.execute = run;",
        "module.exports = { execute };",
        "module.exports = { async execute({ args }) {} };",
        "module.exports = { a: 1, execute: run };",
        "module.exports = { 'execute': run };",
        "module.exports = { ...other };",
        "exports = module.exports = { execute };",
        "module.exports = require('./other.js');",
        "'use strict';\nconst a = require('a');\nexports.execute = a;",
        "export default { execute };",
        "export default { async execute() {} };",
        "#!/usr/bin/env node\nexport const execute = 1;",
        "// a comment\nimport a from './a.json' with { type: 'json' };\nexport const execute = async () => a?.b ?? (await import('c'));",
        "export const execute = () => /[/]`${'}/u.test(`${`}`}`);",
    ],
)  # fmt: skip
def test_an_execute_is_found_however_it_is_exported(code, read):
    assert read(js=code).problems == ()


@pytest.mark.parametrize(
    "code",
    [
        "",
        "// export function execute() {}",
        "/* export { execute } */",
        "async function execute() {}",
        "const text = 'export function execute() {}';",
        "const text = `\nexport function execute() {}\n`;",
        "export function executes() {}",
        "export { execute as run };",
        "export { execute as default };",
        "export default execute;",
        "export default async function execute() {}",
        "export class execute {}",
        "export * as execute from './other.js';",
        "export * as other from './other.js';",
        "export const other = { execute };",
        "import { execute } from './other.js';",
        "exports.other = execute;",
        "other.execute = 1;",
        "module.exports = { run: execute };",
        "module.exports = execute;",
        "function a() { exports.execute = 1; }",
        "export {};",
    ],
)
def test_a_handler_without_that_export_is_refused_with_the_line_to_write(code, faults):
    assert faults(js=code) == [NO_EXPORT]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("export function execute() {\n  return 1;\n", 3),
        ("const a = 1;\n\nexport const execute = ;\n", 3),
        ("export function execute() {}\n)\n", 2),
        ("export function execute( {", 1),
        ("export async function execute() { return { ok: true, error: ... }; }", 1),
        ("def execute(args, context):\n    pass", 1),
        ("let a = 1;\n// \x00\nexport const execute = 1;", 2),
        ("let a = 1;\nlet b = `\x00`;\nexport const execute = 1;", 2),
    ],
)
def test_a_syntax_error_is_told_with_its_line(code, line, faults):
    (told,) = faults(js=code)
    place, _, text = told.partition(": ")
    assert text == "is not JavaScript from here on; correct the syntax"
    assert abs(int(place.removeprefix("handler.js:")) - line) <= 2
    assert line != 2 or place == "handler.js:2"


def test_a_handler_that_is_not_utf8_is_refused_with_its_line(faults):
    assert faults(js=b"\n\n\xff") == ["handler.js:3: is not UTF-8; save the document as UTF-8"]
    assert faults(js=None, py=b"# a\n\xff") == ["handler.py:1: not UTF-8 at byte 4; save it as UTF-8"]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "code", ["(" * 200_000, "[" * 200_000, "{" * 200_000, "`${" * 80_000, "a=>" * 80_000, "!" * 200_000, "x=" * 120_000, "/*" * 100_000]
)  # fmt: skip
def test_deep_code_is_refused_and_breaks_nothing(code, faults):
    assert len(faults(js=code)) == 1


@pytest.mark.timeout(120)
def test_a_long_chain_of_assignments_is_read_to_its_end(read):
    assert read(js="a = " * 20_000 + "module.exports = { execute };").problems == ()


@pytest.mark.spec("S2-69")
@pytest.mark.parametrize(
    "code",
    [
        "async def execute(args, context):\n    return {}",
        "def execute(args, context): ...",
        "def execute(a, b, /): ...",
        "def execute(args, context, more=1, *, deep=2): ...",
        "def execute(*both): ...",
        "def execute(args, *more, **rest): ...",
        "import os\n\ndef helper(): ...\n\n@helper\nasync def execute(args, context=None): ...",
        "def execute(): ...\ndef execute(args, context): ...",
    ],
)
def test_a_python_handler_has_a_function_of_two_arguments(code, read):
    reading = read(js=None, py=code)
    assert reading.problems == ()
    assert (reading.tool.run.language, reading.tool.run.path) == ("python", "my-tool/handler.py")


@pytest.mark.spec("S2-69")
@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("", NO_FUNCTION),
        ("def run(args, context): ...", NO_FUNCTION),
        ("execute = print", NO_FUNCTION),
        ("class A:\n    def execute(self, args): ...", NO_FUNCTION),
        ("'def execute(args, context): ...'", NO_FUNCTION),
        ("\ndef execute(): ...", f"handler.py:2: {NOT_TWO}"),
        ("def execute(args): ...", f"handler.py:1: {NOT_TWO}"),
        ("def execute(args, context, more): ...", f"handler.py:1: {NOT_TWO}"),
        ("def execute(args, *, context): ...", f"handler.py:1: {NOT_TWO}"),
        ("def execute(*, args, context): ...", f"handler.py:1: {NOT_TWO}"),
        ("def execute(args, context, *, more): ...", f"handler.py:1: {NOT_TWO}"),
        ("def execute(args, context): ...\n@dec\ndef execute(args): ...", f"handler.py:3: {NOT_TWO}"),
        ("a = 1\ndef execute(args, context:\n", "handler.py:2: '(' was never closed; correct the line"),
        ("a = 1\x00", "handler.py:1: holds a NUL byte; write it as text"),
        ("(" * 5_000, "handler.py:1: too many nested parentheses; correct the line"),
    ],
)
def test_another_python_handler_is_refused_with_its_line(code, told, faults):
    assert faults(js=None, py=code) == [told]


def test_reading_runs_nothing(read, tmp_path):
    mark = tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w').close()\n\ndef execute(args, context=print('ran')): ..."
    assert read(js=None, py=code).problems == ()
    assert not mark.exists()


LEFT_OUT = (
    "which is not part of the tool, as its path has a name that begins with a dot, or node_modules or __pycache__; "
    "it is not there when the handler runs; move it to another name"
)


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("import a from './.secret.js';\n", "./.secret.js"),
        ("import '../.lib/a.js';\n", "../.lib/a.js"),
        ("export * from './node_modules/a/index.js';\n", "./node_modules/a/index.js"),
        ("const a = require('../_core/__pycache__/a.js');\n", "../_core/__pycache__/a.js"),
        ("const a = async () => [await import(`./lib/.a.js`)];\n", "./lib/.a.js"),
    ],
)
def test_a_handler_that_imports_what_is_no_part_of_the_tool_is_warned_of(code, path, warnings_of):
    whole = f"// first\n{code}export const execute = 1;"
    assert warnings_of(js=whole) == [f'handler.js:2: imports "{path}", {LEFT_OUT}']


@pytest.mark.parametrize(
    "code",
    [
        "import a from './lib/a.js'; import b from '../_core/b.js';",
        "import a from 'lodash'; const b = require('node_modules');",
        "const text = './.secret.js'; log('./node_modules/a');",
        "// import a from './.secret.js'",
        "import(`./${name}/.a.js`);",
    ],
)
def test_other_imports_are_ignored(code, warnings_of):
    assert [line for line in warnings_of(js=f"{code}\nexport const execute = 1;") if "imports" in line] == []


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("import node_modules.a", "node_modules.a"),
        ("from __pycache__ import a", "__pycache__.a"),
        ("import importlib; importlib.import_module('node_modules.a')", "node_modules.a"),
        ("import runpy; runpy.run_path('./.lib/a.py')", "./.lib/a.py"),
    ],
)
def test_a_python_handler_that_imports_what_is_no_part_of_the_tool_is_warned_of(code, path, warnings_of):
    whole = f"# first\n{code}\ndef execute(args, context): ..."
    assert warnings_of(js=None, py=whole) == [f'handler.py:2: imports "{path}", {LEFT_OUT}']
    fine = "import os.path\nfrom . import a\nx = open('./.lib/a.py')\ndef execute(args, context): ..."
    assert warnings_of(js=None, py=fine) == []


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("import { a } from '../../lib/money.js';", "../../lib/money.js"),
        ("import './missing.js';", "./missing.js"),
        ("const a = require('../other-tool/a.js');", "../other-tool/a.js"),
        ("export * from './gone.js';", "./gone.js"),
    ],
)
def test_an_import_of_a_file_that_is_not_there_is_refused(code, path, faults):
    cure = "put it into my-tool/, or into a folder beside it that begins with '_', or remove the import"
    expected = f'handler.js:1: imports "{path}", which is not a file of the tool; {cure}'
    assert faults(js=f"{code}\nexport const execute = 1;") == [expected]


def test_an_import_that_may_fail_is_not_refused(read):
    code = "let a; try { a = require('./maybe.js'); } catch {}\nexports.execute = () => a;"
    assert read(js=code).problems == ()
