"""What authors are told about a hundred typical mistakes in their documents, with path, line and cure."""

from __future__ import annotations

import io
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from toolcrib import Crib
from toolcrib.__main__ import main

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = EXAMPLES / "scripts" / ".ai" / "tools"
# Each document with its mistakes: a text of it, and what stands there instead.
MISTAKES: dict[str, tuple[Path, list[tuple[str, str]]]] = {
    "script.yaml": (
        SCRIPTS / "numbers" / "fibonacci.yaml",
        [
            ("tool_id: fibonacci", "tool_id: [fibonacci]"),
            ("tool_id: fibonacci", "tool_id: Fibonacci Number"),
            ("tool_type: script", "tool_typ: script"),
            ("tool_type: script", "tool_type: scripts"),
            ('version: "1.0.0"', "version: 1.0"),
            ('version: "1.0.0"', 'version: "one"'),
            ("category: numbers", "category: text"),
            ("description: Give a Fibonacci number", "description:"),
            ("description: Give a Fibonacci number", "describtion: Give a Fibonacci number"),
            ("executor_id: awk-runtime", "executor_id: awk runtime"),
            ("executor_id: awk-runtime", "executor_id: null"),
            ("config:", "config: none #"),
            ("args: [", "arguments: ["),
            ("type: integer\n    required", "type: int32\n    required"),
            ("type: integer\n    required", "type: date\n    required"),
            ("required: true", 'required: "yes"'),
            ("minimum: 1", "minimum: one"),
            ("minimum: 1", "minimum: 90"),
            ("- name: position", "- nam: position"),
            ("- name: position", "- name: class position"),
            ("parameters:", "parameter:"),
            ("output_schema:\n  type: integer", "output_schema:\n  type: whole"),
            ("output_schema:\n  type: integer", "output_schema: integer"),
            ("category: numbers", "category: numbers\ntimeout: 0"),
            ("category: numbers", "category: numbers\ntimeout: 30s"),
            ("category: numbers", "category: numbers\ncost: {per_invocation: -1}"),
            ("category: numbers", "category: numbers\ncost: {per_call: 1}"),
            ("category: numbers", "category: numbers\nretry_policy: {max_attempts: 0}"),
            ("category: numbers", "category: numbers\nretry_policy: {backoff_type: random}"),
            ("category: numbers", "category: numbers\nlimits: {maxCallsPerMinute: 0}"),
            ("category: numbers", "category: numbers\nrequires: [fswrite]"),
            ("category: numbers", "category: numbers\nrequires: fs.read"),
            ("category: numbers", "category: numbers\ntags: [a b]"),
            ("category: numbers", "category: numbers\n\tauthor: x"),
            ("category: numbers", "category: numbers\ncategory: numbers"),
        ],
    ),
    "script.py": (
        SCRIPTS / "text" / "slugify.py",
        [
            ('"1.0.0"', "1.0"),
            ('"1.0.0"', '"1"'),
            ('__tool_type__ = "python"', '__tool_type__ = "pyton"'),
            ('__tool_type__ = "python"', "__tool_type__ = kind()"),
            ('__category__ = "text"', "__category__ = None"),
            ('__version__ = "1.0.0"', '__version__ = "1.0.0"\n__requires__ = "fs.read"'),
            ('__version__ = "1.0.0"', '__version__ = "1.0.0"\n__requires__ = ["fs"]'),
            ('__version__ = "1.0.0"', '__version__ = "1.0.0"\n__timeout__ = -1'),
            ('__version__ = "1.0.0"', '__version__ = "1.0.0"\n__retry__ = 3'),
            ("limit: int = 40", "limit: Whole = 40"),
            ("limit: int = 40", "*limits"),
            ("def main(", "def _main("),
            ("-> str:", "-> str"),
        ],
    ),
    "script.js": (
        SCRIPTS / "text" / "initials.js",
        [
            ("@version 1.0.0", "@version latest"),
            ("@tool_type javascript", "@tool_type js5"),
            ("@executor_id node_runtime", "@executor_id"),
            ("@description Give the initials of a name", "@summary Give the initials of a name"),
            ("[{name: name,", "{name: name,"),
            ("type: string", "type: text"),
        ],
    ),
    "http.json": (
        EXAMPLES / "http" / "weather.json",
        [
            ('"schemaVersion": "toolcrib-1",', ""),
            ('"slug": "weather"', '"slug": "bad.slug"'),
            ('"version": "v1"', '"version": "v 1"'),
            ('"displayName": "Weather report"', '"displayName": ""'),
            ('"displayName"', '"displayNam"'),
            ('"isEnabled": true', '"isEnabled": "yes"'),
            ('"isEnabled": true', '"isEnabled": true, "isBuiltIn": true'),
            ('"type": "http"', '"type": "https"'),
            ('"type": "http"', '"type": "go"'),
            ('"argSchema": {\n    "type": "object"', '"argSchema": {\n    "type": "objects"'),
            ('"minLength": 1', '"minLength": "one"'),
            ('"outputSchema": { "type": "string" }', '"outputSchema": []'),
            ('"method": "GET"', '"method": "FETCH"'),
            ('"method": "GET"', '"verb": "GET"'),
            ("https://api", "ftp://api"),
            ("q=${city}", "q=${town}"),
            ("q=${city}", "q=${city"),
            ('"User-Agent": "MyApp/${version}"', '"User Agent": "MyApp"'),
            ('"User-Agent": "MyApp/${version}"', '"User-Agent": "My\\r\\nApp"'),
            ("[200]", "[600]"),
            ("[200]", '"200"'),
            ("10000", "0"),
            ("10000", '"10s"'),
            ('"responseEncoding": "json"', '"responseEncoding": "xml"'),
            ('"$.current.condition.text"', '"$.current["'),
            ('"errorMode": "fail"', '"errorMode": "ignore"'),
            ('"errorMode": "fail"', '"errorMode": "fail", "auth": {"type": "digest"}'),
            ('"errorMode": "fail"', '"errorMode": "fail", "auth": {"type": "bearer"}'),
            ('"errorMode": "fail"', '"errorMode": "fail", "retry": {"max_attempts": "3"}'),
            ('"tags": ["weather"]', '"tags": ["weather", "weather"]'),
            ('"tags": ["weather"]', '"tags": ["weather"],'),
        ],
    ),
    "sql.json": (
        EXAMPLES / "sql" / "move-customer.json",
        [
            ('"shop.sqlite"', '"../shop.sqlite"'),
            ('"shop.sqlite"', '"mysql://db.example.com/shop"'),
            ('"statement"', '"query"'),
            (":city WHERE", ":town WHERE"),
            ("WHERE id = :id", "WHERE id = 1"),
            ("UPDATE customers", "DROP TABLE customers; UPDATE customers"),
            ('"write": true', '"write": "yes"'),
            ('"write": true', '"write": true, "returns": "table"'),
            ('"write": true', '"write": true, "maxRows": 0'),
        ],
    ),
    "schema.json": (
        EXAMPLES / "folders" / "tools" / "refund-order" / "schema.json",
        [
            ('"toolId": "refund_order"', '"toolId": "refundOrder"'),
            ('"toolId"', '"tool_id"'),
            ('"1.0.0"', '"1"'),
            ('"category": "action"', '"category": "actions"'),
            ('"sideEffects": "writes"', '"sideEffects": true'),
            ('"idempotent": false', '"idempotent": "no"'),
            ('["text", "voice"]', '["text", "chat"]'),
            ("2000", "-1"),
            ('"additionalProperties": false,', ""),
            ('["order_id", "amount"]', '["order", "amount"]'),
            ('"minimum": 0.01', '"minimum": "0.01"'),
            ('"description": "How much, in euros.",', ""),
        ],
    ),
    "request.yaml": (
        EXAMPLES / "requests" / "slug_maker.yaml",
        [
            ("tool_request:", "request:"),
            ("name: slug_maker", "name: Slug Maker"),
            ("priority: high", "priority: urgent"),
            ("requested_by: fullsend", "requested_by: [fullsend]"),
            ("type: integer", "type: number of words"),
            ("required: true", "required: always"),
            ("- name: words", "- name: headline"),
            ("schema: string", "schema: [string]"),
            ("- Only small letters", "- Only: small letters"),
            ("words=2)", "wrds=2)"),
            ("from tools.slug_maker", "from tools.slugs"),
            ('{headline: "Tea!"}', '{title: "Tea!"}'),
            ("{slug: tea, dropped: []}", "{slug: 3, dropped: []}"),
            ("  inputs:", "\tinputs:"),
        ],
    ),
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolcrib.toml").touch()
    return tmp_path


@pytest.mark.parametrize("document", MISTAKES)
def test_authors_are_told_about_a_mistake_as_it_is_pinned(document, project, golden):
    source, mistakes = MISTAKES[document]
    text, said = source.read_text("utf-8"), []
    for right, wrong in mistakes:
        assert right in text, right
        messages = problems_of(document, source, text.replace(right, wrong, 1), project)
        said.append(f"{wrong!r} for {right!r}\n" + "".join(f"    {line}\n" for line in messages))
    golden(f"mistakes_{document.replace('.', '_')}.txt", "".join(said))


def problems_of(document: str, source: Path, text: str, project: Path) -> list[str]:
    """What the product says about a document of a project."""
    if document.startswith("script"):
        return problems_of_script(source, text, project)
    if document == "schema.json":
        folder = project / "tools" / source.parent.name
        shutil.copytree(source.parent, folder, dirs_exist_ok=True)
        (folder / source.name).write_text(text)
        return printed("build")
    file = project / "documents" / source.name
    file.parent.mkdir(exist_ok=True)
    if document == "request.yaml":
        file.write_text(text.replace("tool_request:", "tool_request:\n  id: req_20240115_001", 1))
        lines = printed("request", "submit", str(file))
    else:
        file.write_text(text)
        shutil.rmtree(project / ".toolcrib", ignore_errors=True)
        lines = printed("bundle", "load", str(file.parent))
    return [line.replace(f"{project}/", "") for line in lines if source.name in line]


def problems_of_script(source: Path, text: str, project: Path) -> list[str]:
    """The problems and warnings of a script, whose runtime is there."""
    shutil.copytree(SCRIPTS, project / ".ai" / "tools", dirs_exist_ok=True)
    file = project / ".ai" / "tools" / source.relative_to(SCRIPTS)
    file.write_text(text)
    with Crib(project) as crib:
        warnings = [warning for tool in crib.tools for warning in crib.warnings(tool)]
        said = [problem.message for problem in crib.problems] + warnings
    return [message for message in said if source.name in message]


def printed(*words: str) -> list[str]:
    """What a command prints."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
        main([*words])
    return [line.rstrip() for line in out.getvalue().splitlines()]
