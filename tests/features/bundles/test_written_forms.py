"""Documents of bundles as other programs write them."""

import json

import pytest

from toolcrib import ToolError
from toolcrib.features.bundles.written_forms import to_stored_form

FLAT = {"method": "GET", "urlTemplate": "https://a.invalid/"}
TOOL = {
    "schemaVersion": "toolcrib-1",
    "slug": "get-user",
    "version": "v1",
    "displayName": "Get a user",
    "description": "Get a user",
    "type": "http",
    "isEnabled": True,
    "argSchema": {"type": "object"},
    "outputSchema": {},
}


@pytest.mark.parametrize(("name", "kind"), [("goImpl", "go"), ("httpImpl", "http")])
def test_an_implementation_that_is_named_by_its_type_is_the_implementation(name, kind):
    document, warnings = to_stored_form({"type": kind, name: FLAT}, "a.json")
    assert document == {"type": kind, "impl": FLAT}
    assert warnings == [f"a.json: {name} is read as impl; write impl"]


def test_request_and_response_become_one():
    nested = {
        "request": {"method": "POST", "urlTemplate": "https://a.invalid/", "body": "x"},
        "response": {"successCodes": [201], "encoding": "json", "selector": "$.id"},
    }
    document, _ = to_stored_form({"type": "http", "httpImpl": nested}, "a.json")
    assert document["impl"] == {
        "method": "POST",
        "urlTemplate": "https://a.invalid/",
        "bodyTemplate": "x",
        "successCodes": [201],
        "responseEncoding": "json",
        "extractExpr": "$.id",
    }


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"type": "go", "httpImpl": FLAT}, 'httpImpl is for tools of type "http", and this one is'),
        ({"type": "http", "httpImpl": FLAT, "impl": FLAT}, "stand beside each other"),
        ({"type": "http", "httpImpl": {"request": {"proxy": "x"}}}, "request.proxy is not known or stands twice"),
        ({"type": "http", "httpImpl": {"request": []}}, "request must be an object"),
    ],
)
def test_what_is_not_certain_is_refused(document, words):
    with pytest.raises(ToolError, match=words):
        to_stored_form(document, "a.json")


def test_a_folder_of_such_documents_is_loaded_with_warnings_and_refused_when_strict(project, tmp_path, cli):
    folder = tmp_path / "samples"
    folder.mkdir()
    tools = [{**TOOL, "httpImpl": FLAT}, {**TOOL, "slug": "get-team", "impl": FLAT}]
    (folder / "crm.json").write_text(json.dumps(tools))
    strict = cli("bundle", "load", "--strict", "-C", str(project), str(folder))
    assert strict.code
    assert "bundle.json is not there, so the folder names the bundle samples" in strict.err
    loaded = cli("bundle", "load", "-C", str(project), str(folder))
    assert loaded.code == 0
    assert "httpImpl is read as impl; write impl" in loaded.err
    shown = cli("list", "-C", str(project))
    assert shown.code == 0
    listed = shown.out
    assert "get-user" in listed
    assert "get-team" in listed


def test_a_function_without_an_implementation_is_told_what_to_write(project, tmp_path, cli):
    folder = tmp_path / "samples"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps({**TOOL, "type": "go"}))
    refused = cli("bundle", "load", "-C", str(project), str(folder))
    assert refused.code
    assert 'impl is missing; write "impl": {"goFunc": "the key of a registered function"}' in refused.err
