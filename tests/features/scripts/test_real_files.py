"""Spellings that authors of script files really use: accepted with a warning that says how to write it, refused with --strict."""

import pytest

from toolcrib import Crib

HEAD = 'version: "1.0.0"\ncategory: ops\ndescription: A sample that fails never\n'
PYTHON = (
    '__version__ = "1.0.0"\n__tool_type__ = "python"\n__category__ = "ops"\n'
    '__tool_description__ = "A sample that fails never"\n'
)
RUNTIME = (
    "tool_id: json-runtime\ntool_type: runtime\nversion: '1.0.0'\ncategory: ops\ndescription: Python with JSON\n"
    "executor_id: subprocess\nconfig:\n  command: python3\n"
    "  args: ['{tool_path}', --params, '{params_json}', --project, '{project_path}']\n"
)
SCHEMA = (
    "{'type': 'object', 'properties': {'a': {'type': 'integer'}}, 'required': ['a'], 'additionalProperties': False}"
)


@pytest.fixture
def write(project):
    (project / "toolcrib.toml").write_text('[grants]\n"*" = ["shell.execute", "fs.*"]\n')
    folder = project / ".ai" / "tools" / "ops"
    folder.mkdir(parents=True)

    def write(name, text):
        (folder / name).write_text(text)

    return write


@pytest.fixture
def load(project):
    def load(name):
        with Crib(project) as crib:
            assert not crib.problems
            entry = crib.find(name)
            return entry.tool, [line.removeprefix(".ai/tools/ops/") for line in crib.warnings(entry.tool)]

    return load


@pytest.fixture
def call(project):
    def call(name, /, **arguments):
        with Crib(project) as crib:
            result = crib.call_sync(name, **arguments)
            assert result.ok, result.error
            return result.value

    return call


def strict(project, cli):
    """The exit code of a strict check, and what it says."""
    checked = cli("check", "--strict", "-C", str(project))
    return checked.code, checked.out


@pytest.mark.spec("S3-43")
def test_a_document_without_tool_id_is_named_by_its_file(project, write, load, call, cli):
    more = (
        "tool_type: script\nexecutor_id: subprocess\nrequires: [shell.execute]\nconfig: {command: echo, args: [hi]}\n"
    )
    write("say-hi.yaml", HEAD + more)
    _, warnings = load("say-hi")
    text = 'say-hi.yaml:1: tool_id: is missing, so the file names the tool; write tool_id: "say-hi"'
    assert text in warnings
    assert call("say-hi") == "hi"
    code, said = strict(project, cli)
    assert code
    assert "tool_id: is missing" in said


@pytest.mark.parametrize("written", ["rye/core/runtimes/python_runtime", "core/python_runtime"])
def test_an_executor_that_is_written_as_a_path_is_its_last_part(project, write, load, call, cli, written):
    write("double.py", f"{PYTHON}__executor_id__ = '{written}'\ndef main(a: int) -> int:\n    return 2 * a\n")
    tool, warnings = load("double")
    assert tool.run.executor == "python_runtime"
    expected = f'double.py:5: __executor_id__: {written!r} is a path; write __executor_id__ = "python_runtime"'
    assert expected in warnings
    assert call("double", a=4) == 8
    assert strict(project, cli)[0]


def test_a_runtime_may_name_the_file_the_arguments_and_the_project(write, call):
    write("json-runtime.yaml", RUNTIME)
    code = "import json, sys\nprint(json.dumps({'words': sys.argv[1:]}))\n"
    write("show.py", f"{PYTHON}__executor_id__ = 'json-runtime'\n__input_schema__ = {SCHEMA}\n{code}")
    words = (call("show", a=3))["words"]
    assert words[:2] == ["--params", '{"a": 3}']
    assert words[2] == "--project"


def test_an_argument_is_never_taken_for_a_name_of_the_runtime(project, write, call):
    write("json-runtime.yaml", RUNTIME.replace("'{project_path}'", "'{a}'"))
    write("show.py", f"{PYTHON}__executor_id__ = 'json-runtime'\n__input_schema__ = {SCHEMA}\nprint(1)\n")
    with Crib(project) as crib:
        error = crib.call_sync("show", a=3).error
    assert "{a} is neither a parameter nor a name of the platform" in error.message


@pytest.mark.parametrize("name", ["CONFIG_SCHEMA", "config_schema"])
def test_a_config_schema_is_the_input_schema(project, write, load, call, cli, name):
    write(
        "double.py", f"{PYTHON}__executor_id__ = 'python_runtime'\n{name} = {SCHEMA}\ndef main(a):\n    return 2 * a\n"
    )
    tool, warnings = load("double")
    assert tool.parameters["required"] == ["a"]
    assert f"double.py:6: {name}: is read as the input schema; write __input_schema__" in warnings
    assert call("double", a=4) == 8
    assert strict(project, cli)[0]


def test_so_is_one_of_a_document(write, load):
    more = "tool_id: say-hi\ntool_type: script\nexecutor_id: bash\n"
    write("say-hi.yaml", f"{HEAD}{more}config_schema: {{type: object, properties: {{a: {{type: integer}}}}}}\n")
    tool, warnings = load("say-hi")
    assert list(tool.parameters["properties"]) == ["a"]
    assert "say-hi.yaml:7: config_schema: is read as the input schema; write input_schema" in warnings


def test_a_computed_config_schema_is_not_read_and_says_so(write, load):
    write(
        "double.py",
        f"{PYTHON}__executor_id__ = 'python_runtime'\nCONFIG_SCHEMA = make()\ndef main(a: int):\n    return a\n",
    )
    tool, warnings = load("double")
    assert tool.parameters["properties"] == {"a": {"type": "integer"}}
    assert any("CONFIG_SCHEMA: is not a literal, so it is not read" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("written", "capabilities"),
    [
        ('{"capabilities": ["fs.read"], "python": ">=3.10"}', {"fs.read"}),
        ('{"fs.read": True, "net.http": False}', {"fs.read"}),
        ('{"permissions": []}', set()),
    ],
)
def test_requires_may_be_a_mapping(project, write, load, cli, written, capabilities):
    write(
        "look.py", f"{PYTHON}__executor_id__ = 'python_runtime'\n__requires__ = {written}\ndef main():\n    return 1\n"
    )
    tool, warnings = load("look")
    assert tool.requires == capabilities
    assert any("__requires__: is a mapping; write a list" in warning for warning in warnings)
    assert strict(project, cli)[0]


@pytest.mark.parametrize("written", ['{"fs": "read"}', '{"fs.read": "yes"}', '{"capabilities": "fs.read"}'])
def test_a_mapping_that_is_not_certain_is_refused(project, write, written):
    write(
        "look.py", f"{PYTHON}__executor_id__ = 'python_runtime'\n__requires__ = {written}\ndef main():\n    return 1\n"
    )
    with Crib(project) as crib:
        assert "__requires__" in crib.problems[0].message


EXPORTED = """export const __version__ = "1.0.0";
export const __tool_type__ = "javascript";
export const __executor_id__ = "node_runtime";
export const __category__ = "ops";
export const __tool_description__ = "Double a number; fails on text";
export const CONFIG_SCHEMA = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };
export async function execute(params) { return { twice: 2 * params.a } }
"""


@pytest.mark.parametrize("name", ["double.js", "double.mjs", "double.ts"])
def test_metadata_may_be_exported_constants(project, write, load, call, cli, name):
    write(name, EXPORTED)
    tool, warnings = load("double")
    assert (tool.parameters["required"], tool.run.script.convention) == (["a"], "keywords")
    assert (
        f"{name}:1: export const __…__ is read as metadata; write @version and so on in the first comment" in warnings
    )
    assert call("double", a=4) == {"twice": 8}
    assert strict(project, cli)[0]


def test_a_primitive_of_the_platforms_name_is_the_platforms(project, write, load, call, cli):
    write("subprocess.yaml", f"{HEAD}tool_id: subprocess\ntool_type: primitive\nexecutor_id: null\n")
    more = "tool_id: say-hi\ntool_type: script\nexecutor_id: subprocess\nrequires: [shell.execute]\nconfig: {command: echo, args: [hi]}\n"
    write("say-hi.yaml", HEAD + more)
    _, warnings = load("project/subprocess")
    assert (
        "subprocess.yaml:6: executor_id: null means the platform's own subprocess; name it as executor, and remove this file"
        in warnings
    )
    assert call("say-hi") == "hi"
    assert strict(project, cli)[0]
