"""What was checked is what a handler finds in its folders, and nothing else there can be read."""

import json
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import toolcrib
from toolcrib import Tool
from toolcrib.model.tool import Handler

NODE = """
import fs from "node:fs";
import { word } from "./lib/helper.js";
import { word as shared } from "../_core/words.js";
const read = (path) => { try { return fs.readFileSync(path, "utf8"); } catch (problem) { return problem.code; } };
const load = (path) => import(path).then(({ word }) => word, (problem) => problem.code);
export async function execute({ args }) {
  return {
    ok: true,
    data: {
      words: [word, shared],
      read: Object.fromEntries(args.paths.map((path) => [path, read(path)])),
      loaded: await Promise.all((args.modules ?? []).map(load)),
      names: fs.readdirSync(".").sort(),
    },
  };
}
"""
PYTHON = """
import errno, importlib, os
from lib.helper import word
from _core.words import word as shared
def read(path):
    try:
        return open(path).read()
    except OSError as problem:
        return errno.errorcode[problem.errno]
def load(name):
    try:
        return importlib.import_module(name).word
    except OSError as problem:
        return errno.errorcode[problem.errno]
def execute(args, context):
    return {"ok": True, "data": {
        "words": [word, shared],
        "read": {path: read(path) for path in args["paths"]},
        "loaded": [load(name) for name in args.get("modules", [])],
        "names": sorted(os.listdir(".")),
    }}
"""
CHECKED = {
    "javascript": {
        "sample/handler.js": NODE,
        "sample/lib/helper.js": "export const word = 'checked';",
        "sample/lib/data.txt": "checked",
        "_core/words.js": "export const word = 'checked';",
    },
    "python": {
        "sample/handler.py": PYTHON,
        "sample/lib/helper.py": "word = 'checked'",
        "sample/lib/data.txt": "checked",
        "_core/words.py": "word = 'checked'",
    },
}
# What no build looks at, and what came later.
UNCHECKED = (
    *("sample/.helper.js", "sample/lib/.hidden/x.js", "sample/__pycache__/x.pyc", "_core/.hidden"),
    *("sample/late.js", "sample/late.py", "sample/lib/late/late.txt", "_core/late.txt"),
)
MODULES = {"javascript": ["./.helper.js", "./late.js"], "python": ["late"]}


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def make(root, language):
    """A tool whose folder holds more than what was checked of it."""
    for path, text in CHECKED[language].items():
        write(root, path, text)
    for path in UNCHECKED:
        write(root, path, "export const word = 'unchecked';" if path.endswith(".js") else "word = 'unchecked'")
    contents = {path: text.encode() for path, text in CHECKED[language].items()}
    run = Handler(
        root=root,
        folder="sample",
        language=language,
        files={path: content for path, content in contents.items() if path.startswith("sample/")},
        shared={path: content for path, content in contents.items() if path.startswith("_")},
    )
    return Tool(name="sample", description="d", parameters={"type": "object"}, run=run)


@pytest.fixture
def call(crib_of, sandbox, tmp_path):
    """Call a tool that reads, with these paths and modules."""

    async def call(tool, **arguments):
        crib = crib_of(tool, workspace={"folder": str(tmp_path / "work")})
        crib._resources.lend(sandbox=sandbox)  # it has tried the walls of this machine
        result = await crib.call("sample", {"paths": [], **arguments})
        assert result.error is None, result.error.message
        return result.value

    (tmp_path / "work").mkdir()
    return call


@pytest.mark.parametrize("language", CHECKED)
async def test_a_handler_reads_what_was_checked_of_its_folders_and_only_the_names_of_the_rest(call, tmp_path, language):
    root = tmp_path / "tools"
    tool = make(root, language)
    paths = [str(root / path) for path in (*CHECKED[language], *UNCHECKED)]
    told = await call(tool, paths=paths, modules=MODULES[language])
    assert told["words"] == ["checked", "checked"]
    expected = {**CHECKED[language], **dict.fromkeys(UNCHECKED, "EACCES")}
    assert told["read"] == {str(root / path): text for path, text in expected.items()}
    assert told["loaded"] == ["EACCES"] * len(MODULES[language])
    assert told["names"] == sorted(path.name for path in (root / "sample").iterdir())


@pytest.mark.parametrize("language", CHECKED)
async def test_what_changes_on_disk_is_not_what_a_handler_finds(call, tmp_path, language):
    root = tmp_path / "tools"
    tool = make(root, language)
    for path in CHECKED[language]:
        write(root, path, "changed")
    told = await call(tool, paths=[str(root / path) for path in CHECKED[language]])
    assert told["words"] == ["checked", "checked"]
    assert list(told["read"].values()) == list(CHECKED[language].values())


async def test_bytecode_that_lies_beside_a_module_is_not_what_runs(call, tmp_path):
    root = tmp_path / "tools"
    tool = make(root, "python")
    write(tmp_path, "other.py", "word = 'from bytecode'")
    for name in ("lib/__pycache__/helper", "__pycache__/handler"):
        compiled = root / "sample" / f"{name}.{sys.implementation.cache_tag}.pyc"
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(tmp_path / "other.py"), cfile=str(compiled), invalidation_mode=mode)
    assert (await call(tool))["words"] == ["checked", "checked"]


async def test_a_handler_finds_the_packages_of_its_folder_and_those_of_what_it_shares(folders):
    code = """
    import { name } from "near";
    import { inner } from "../_core/words.js";
    export const execute = () => ({ ok: true, data: [name, inner] });
    """
    folders.share("_core/words.js", "import { name } from 'inner'; export const inner = name;")
    tool = folders.tool("sample", code)
    for package, folder in (("near", "sample"), ("inner", "_core")):
        home = f"{folder}/node_modules/{package}"
        write(
            folders.root, f"{home}/package.json", json.dumps({"name": package, "type": "module", "main": "./index.js"})
        )
        write(folders.root, f"{home}/index.js", f"export const name = '{package}';")
    assert await folders.data(tool) == ["near", "inner"]


WITHOUT_MOUNTS = """
import asyncio, json, sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
from toolcrib import Crib
from test_contents import CHECKED, MODULES, UNCHECKED, make, write

async def main(work):
    told = {}
    for language, checked in CHECKED.items():
        root = work / language / "tools"
        tool = make(root, language)
        (work / "work").mkdir(exist_ok=True)
        async with Crib(tools=[tool], workspace={"folder": str(work / "work")}) as crib:
            paths = [str(root / path) for path in (*checked, *UNCHECKED)]
            seen = await crib.call("sample", {"paths": paths, "modules": MODULES[language]})
        write(root, "sample/lib/data.txt", "changed")
        async with Crib(tools=[tool], workspace={"folder": str(work / "work")}) as crib:
            changed = await crib.call("sample", {"paths": []})
        told[language] = {
            "layers": seen.meta["sandbox"]["layers"],
            "read": list(seen.value["read"].values()),
            "loaded": seen.value["loaded"],
            "changed": changed.error.to_json(),
        }
    print(json.dumps(told))

asyncio.run(main(Path(sys.argv[3])))
"""


def test_without_mounts_it_reads_no_more_and_a_change_is_refused(tmp_path):
    shutil.copytree(Path(toolcrib.__file__).parent, tmp_path / "lib" / "toolcrib")
    code = tmp_path / "lib" / "toolcrib" / "infra" / "sandbox" / "child" / "isolation.py"
    known = "if not system.HAS_SUBREAPER or not os.path.isdir(SHARED_MEMORY) or not system.can_arrange_mounts():"
    assert known in code.read_text()
    code.write_text(code.read_text().replace(known, "if True:"))
    folders = [str(tmp_path / "lib"), str(Path(__file__).parent), str(tmp_path)]
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_MOUNTS, *folders]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False, text=True)
    assert done.returncode == 0, done.stderr
    for language, told in json.loads(done.stdout).items():
        assert "mounts" not in told["layers"]
        assert told["read"] == [*CHECKED[language].values(), *["EACCES"] * len(UNCHECKED)]
        assert told["loaded"] == ["EACCES"] * len(MODULES[language])
        assert told["changed"]["type"] == "CONFLICT"
        assert told["changed"]["message"].startswith("sample/lib/data.txt changed since it was loaded")
