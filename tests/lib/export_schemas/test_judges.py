"""Every export is accepted by the vendor's own validation."""

import copy
import json
from pathlib import Path

import pytest

from toolcrib.lib.export_schemas import Provider
from toolcrib.lib.export_schemas.definitions import export_tool
from toolcrib.lib.schema import check_schema

ROOT = Path(__file__).parents[3]


def test_the_corpus_is_made_of_schemas_that_tools_may_have(corpus):
    for name, schema in corpus.items():
        check_schema(schema, name)


@pytest.fixture
def judge(vendors):
    """Let the vendor's own code judge a definition."""

    def openai(definition, strict):
        vendors.chat.validate_python(definition, strict=True)
        function = definition["function"]
        _judge_strict(vendors, function["parameters"]) if strict else _judge_root(function["parameters"])
        assert function.get("strict", False) is strict

    def responses(definition, strict):
        vendors.responses.validate_python(definition, strict=True)
        _judge_strict(vendors, definition["parameters"]) if strict else _judge_root(definition["parameters"])
        assert definition["strict"] is strict

    def gemini(definition, strict):
        declaration = vendors.gemini.FunctionDeclaration.model_validate(definition)
        assert declaration.model_dump(mode="json", by_alias=True, exclude_none=True) == definition
        _judge_gemini(definition.get("parameters", {}))

    def anthropic(definition, strict):
        vendors.anthropic.validate_python(definition)
        if strict:
            # Nothing is left that the vendor would move into a description itself.
            assert vendors.transform(copy.deepcopy(definition["input_schema"])) == definition["input_schema"]
        _judge_root(definition["input_schema"])

    def mcp(definition, strict):
        for model in vendors.mcp:
            wire = model.model_validate(definition).model_dump(mode="json", by_alias=True, exclude_none=True)
            assert wire == definition

    return {
        Provider.OPENAI: openai,
        Provider.OPENAI_RESPONSES: responses,
        Provider.GEMINI: gemini,
        Provider.ANTHROPIC: anthropic,
        Provider.MCP: mcp,
    }


def _judge_strict(vendors, parameters):
    assert vendors.strict(copy.deepcopy(parameters)) == parameters


def _judge_root(parameters):
    """What OpenAI and Anthropic answer 400 to."""
    assert parameters["type"] == "object"
    assert not parameters.keys() & {"anyOf", "oneOf", "allOf", "enum", "not"}


def _judge_gemini(schema):
    """What Google's services answer 400 to and its package lets pass."""
    if "anyOf" in schema:
        assert schema.keys() == {"anyOf"}
    assert "enum" not in schema or schema["type"] == "STRING"
    assert "items" in schema or schema.get("type") != "ARRAY"
    assert schema.get("properties", True)
    for inner in [
        *schema.get("anyOf", []),
        *schema.get("properties", {}).values(),
        *filter(None, [schema.get("items")]),
    ]:
        _judge_gemini(inner)


@pytest.mark.spec("S2-51", "S2-52")
def test_the_vendor_accepts_every_export(corpus, way, judge, make_tool):
    provider, strict = way
    for name, schema in corpus.items():
        before = copy.deepcopy(schema)
        export = export_tool(make_tool(schema), provider, strict=strict)
        judge[provider](export.definition, strict)
        assert schema == before, name
        assert json.loads(json.dumps(export.definition)) == export.definition, name


def test_an_export_is_the_same_every_time_and_shares_nothing_with_the_tool(corpus, way, make_tool):
    provider, strict = way
    for schema in corpus.values():
        tool = make_tool(schema)
        before = json.dumps(schema)
        first = export_tool(tool, provider, strict=strict)
        text = json.dumps(first.definition)
        _spoil(first.definition)
        assert json.dumps(schema) == before
        assert json.dumps(export_tool(tool, provider, strict=strict).definition) == text


def _spoil(value):
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _spoil(inner)
    if isinstance(value, dict | list):
        value.clear()


def test_descriptions_are_never_lost(corpus, way, make_tool):
    provider, strict = way
    for schema in corpus.values():
        text = json.dumps(export_tool(make_tool(schema), provider, strict=strict).definition)
        described = json.dumps(schema)
        for words in ("A text.", "Untyped.", "Either.", "Mine.", "A tree."):
            assert (words in text) is (words in described)


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("examples/folders/tools/*/schema.json")), ids=lambda path: path.parent.name
)
def test_the_vendor_accepts_the_tools_of_the_repository(path, way, judge, make_tool):
    provider, strict = way
    document = json.loads(path.read_text())
    export = export_tool(
        make_tool(document["parameters"], description=document["description"]), provider, strict=strict
    )
    judge[provider](export.definition, strict)


def test_gemini_reads_plain_schemas_as_its_own_package_does(vendors, make_tool):
    parameters = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What.", "minLength": 1, "maxLength": 200},
            "count": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
            "share": {"type": "number"},
            "sure": {"type": "boolean"},
            "when": {"type": ["string", "null"], "format": "date"},
            "kinds": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1},
            "inner": {"type": "object", "properties": {"deep": {"type": "string"}}, "required": ["deep"]},
        },
        "required": ["query"],
    }
    theirs = vendors.gemini.Schema.from_json_schema(
        json_schema=vendors.gemini.JSONSchema(**parameters), raise_error_on_unsupported_field=True
    )
    ours = export_tool(make_tool(parameters), Provider.GEMINI).parameters
    assert ours == theirs.model_dump(mode="json", by_alias=True, exclude_none=True)


def test_no_package_of_a_vendor_is_imported_to_export():
    import subprocess
    import sys

    code = (
        "import sys\nfrom toolcrib.lib.export_schemas.definitions import *\nfrom toolcrib.lib.export_schemas import *\n"
        "from toolcrib.model.tool import Function, Tool\n"
        "tool = Tool(name='t', description='', parameters={'type': 'object'}, run=Function(call=print, is_async=False))\n"
        "[export_tool(tool, provider) for provider in Provider]\n"
        "print(sorted(sys.modules.keys() & {'openai', 'agents', 'google.genai', 'anthropic', 'mcp', 'pydantic'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
