"""A handler is loaded by its own syntax, even if the package around it says something else about its files."""

import json

import pytest

MODULE = """
import { word } from "./word.js";
import { shared } from "../_core/shared.js";
export const execute = async () => ({ ok: true, data: [word, shared, typeof require, import.meta.url.slice(0, 8)] });
"""
COMMONJS = """
const { word } = require("./word.js");
exports.execute = async () => ({ ok: true, data: [word, typeof require, __filename.slice(-10)] });
"""
PACKAGES = {
    "without a package": None,
    "without a type": {"name": "x"},
    "of modules": {"type": "module"},
    "of CommonJS": {"type": "commonjs"},
}


@pytest.fixture(params=PACKAGES)
def package(request, folders):
    """A package around the handler that says one thing or another of its files."""
    facts = PACKAGES[request.param]
    return {} if facts is None else {"package.json": json.dumps(facts)}


async def test_a_module_is_loaded_as_one(folders, any_node, package):
    folders.share("_core/shared.js", "export const shared = 'shared';")
    files = {"word.js": "export const word = 'hi';", **package}
    tool = folders.tool("modern", MODULE, files=files)
    assert await folders.data(tool) == ["hi", "shared", "undefined", "file:///"]


async def test_commonjs_is_loaded_as_it_is(folders, any_node, package):
    tool = folders.tool("old", COMMONJS, files={"word.js": "module.exports = { word: 'hi' };", **package})
    assert await folders.data(tool) == ["hi", "function", "handler.js"]


async def test_a_package_further_up_says_as_little(folders, any_node):
    (folders.project / "package.json").write_text('{"type": "commonjs"}')
    folders.share("_core/shared.js", "export const shared = 'shared';")
    files = {"word.js": "export const word = 'hi';"}
    tool = folders.tool("modern", MODULE, files=files, requires=["fs.read"])
    assert await folders.data(tool) == ["hi", "shared", "undefined", "file:///"]


async def test_a_shared_folder_with_a_package_of_its_own_says_as_little(folders, any_node):
    folders.share("_core/shared.js", "export const shared = 'shared';")
    folders.share("_core/package.json", '{"type": "commonjs"}')
    tool = folders.tool("modern", MODULE, files={"word.js": "export const word = 'hi';"})
    assert await folders.data(tool) == ["hi", "shared", "undefined", "file:///"]


async def test_a_module_may_wait_at_its_top(folders, any_node):
    code = "const word = await Promise.resolve('hi'); export const execute = () => ({ ok: true, data: word });"
    assert await folders.data(folders.tool("patient", code, files={"package.json": '{"type": "commonjs"}'})) == "hi"


async def test_a_default_export_may_hold_execute(folders):
    code = "export default { execute: () => ({ ok: true, data: 1 }) };"
    assert await folders.data(folders.tool("wrapped", code)) == 1


async def test_what_is_installed_near_the_tool_is_found_and_read_as_its_own_package_says(folders, any_node):
    (folders.project / "node_modules" / "helper").mkdir(parents=True)
    (folders.project / "node_modules" / "helper" / "package.json").write_text('{"name": "helper", "main": "main.js"}')
    (folders.project / "node_modules" / "helper" / "main.js").write_text("exports.help = () => typeof module;")
    code = "import { help } from 'helper'; export const execute = () => ({ ok: true, data: help() });"
    tool = folders.tool("helped", code, files={"package.json": '{"type": "commonjs"}'})
    assert await folders.data(tool) == "object"
