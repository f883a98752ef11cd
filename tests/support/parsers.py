"""Every parser of what others write, as the judge `fuzz` tries it: bytes in, any exception out is a failure.

A parser refuses with the error that it declares, which is not a failure. Where two readers must agree, a difference is one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib import Bundle, ToolError
from toolcrib.features.bundles.format import read_stored_bundle, read_stored_tool
from toolcrib.features.bundles.pages import Cursors
from toolcrib.features.depots.package import decode_manifest
from toolcrib.features.ecosystems.format import FrameworkFile
from toolcrib.features.http_tools.address import compile_address
from toolcrib.features.http_tools.extraction import compile_extract
from toolcrib.features.http_tools.slots import read_slots
from toolcrib.features.python_files.format import PlainFile
from toolcrib.features.python_files.program_format import PythonProgram
from toolcrib.features.requests.document import read_request
from toolcrib.features.scripts.format import ScriptFile
from toolcrib.infra.egress.http1 import parse_request, parse_response
from toolcrib.interfaces.mcp.messages import ProtocolError, read_message
from toolcrib.lib.bash_program import read_bash_program, uses_odd_places
from toolcrib.lib.documents import read_json, read_jsonc, read_plain
from toolcrib.lib.http_syntax import follow_reference, parse_hosts, parse_url
from toolcrib.lib.javascript_program import read_javascript_program
from toolcrib.lib.schema import check_schema, compile_schema
from toolcrib.lib.shell.reader import read_line
from toolcrib.lib.signed_tokens import TokenError, read_token
from toolcrib.lib.templates import as_url_part, compile_template
from toolcrib.lib.yaml import read_yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.protocols import Format

ROOT = Path(__file__).resolve().parents[2]
MAX_BYTES = 8_192
BUNDLE = Bundle(id="01900000-0000-7000-8000-000000000000", slug="acme")
BASE = parse_url("https://api.example.com/a/b?c=d")
CURSORS = Cursors(lambda: b"k" * 32)


@dataclass(frozen=True, kw_only=True, slots=True)
class Parser:
    """A parser under test, and inputs that it reads."""

    parse: Callable[[bytes], object]
    seeds: tuple[bytes, ...] = ()
    files: tuple[str, ...] = ()

    def inputs(self) -> list[bytes]:
        """Every seed, those in files included."""
        found = [path.read_bytes() for pattern in self.files for path in sorted(ROOT.glob(pattern)) if path.is_file()]
        return [*self.seeds, *(data for data in found if len(data) <= MAX_BYTES)]


def attempt(read: Callable[..., object], *given: object, **more: object) -> object:
    """What is read; None for what is refused."""
    try:
        return read(*given, **more)
    except (ToolError, ProtocolError, TokenError):
        return None


def expect(holds: object, *said: object) -> None:
    """Fail with what was seen, if something does not hold."""
    if not holds:
        raise AssertionError(*said)


def text_of(data: bytes) -> str:
    """The bytes as a text, which may hold lone surrogates as a string of JSON may."""
    return data.decode("utf-8", "surrogateescape")


def parse_urls(data: bytes) -> None:
    """What was read is read again as the same."""
    text = text_of(data)
    for url in (attempt(parse_url, text), attempt(follow_reference, BASE, text)):
        expect(url is None or parse_url(str(url)) == url, url)
    attempt(parse_hosts, text.split())


def parse_templates(data: bytes) -> None:
    """Templates of scripts and those of requests."""
    text = text_of(data)
    template = compile_template({"it": text})
    attempt(template.render, lambda name: [name], lambda name: name, as_url_part)
    attempt(read_slots, text)
    attempt(compile_address, text, {"q": text})


def parse_yaml(data: bytes) -> None:
    """What is read can be written as JSON."""
    document = attempt(read_yaml, data)
    json.dumps(document and document.value, allow_nan=False)  # type: ignore[attr-defined]


def parse_json(data: bytes) -> None:
    """The quick reader gives what the strict one gives, or leaves the document to it."""
    quick = read_plain(data)
    expect(quick is None or json.dumps(quick) == json.dumps(read_json(data)), data)
    for read in (read_json, read_jsonc):
        attempt(read, data)


def parse_page_token(data: bytes) -> None:
    """No made-up token is taken, and one of our own gives its position."""
    text = text_of(data)
    expect(attempt(CURSORS.read, ["tools"], text) is None, text)
    expect(CURSORS.read([text], CURSORS.write([text], text)) == text, text)


def parse_http_head(data: bytes) -> None:
    """The heads that the proxy reads."""
    attempt(parse_request, data)
    attempt(parse_response, data)


def parse_stored(data: bytes) -> None:
    """Stored documents of bundles and of their tools."""
    attempt(read_stored_bundle, data, bundle_id=BUNDLE.id)
    attempt(read_stored_tool, data, bundle=BUNDLE, place="weather@v1.json")


def parse_schema(data: bytes) -> None:
    """A schema that is let in can be used."""
    schema = attempt(read_json, data)

    def use() -> None:
        check_schema(schema, "schema")
        compile_schema(schema).is_valid({"a": [1, "b", None]})

    attempt(use)


def parse_bash(data: bytes) -> None:
    """There is nothing to refuse: what cannot be told is a problem of the result."""
    read_bash_program(data)
    uses_odd_places(data)


def parse_javascript(data: bytes) -> None:
    """JavaScript and TypeScript programs."""
    for place in ("weather.js", "weather.ts"):
        attempt(read_javascript_program, text_of(data), "weather", place)


def in_formats(name: str, *formats: Format) -> Callable[[bytes], None]:
    """A file of that name as each of the formats reads it."""

    def parse(data: bytes) -> None:
        for each in formats:
            attempt(lambda format_: [*format_.read(ROOT / name, data)], each)

    return parse


PARSERS = {
    "urls": Parser(
        parse=parse_urls,
        seeds=(b"https://api.example.com:8443/a?b=c#d", b"http://[::1]/", b"//x.example/..", b"*.example.com a:1"),
    ),
    "templates": Parser(
        parse=parse_templates,
        seeds=(b"https://x.example/${city}?q=${a.b}", b"{name} ${HOME:-x} {{literal}}", b'{"a": "${b}", "c": ${d}}'),
    ),
    "yaml": Parser(
        parse=parse_yaml,
        seeds=(b"a: &x [1, 2.5, ~]\nb: *x\nc: |\n  text\n", b"- {a: 'b'}\n"),
        files=("tests/seeds/fixtures/**/*.yaml",),
    ),
    "json": Parser(
        parse=parse_json,
        seeds=(b'{"a": [1, 2e9, "\\ud800", null], "b": {"a": true}}', b'{"a": 1, "a": 2} // x'),
    ),
    "shell": Parser(
        parse=lambda data: attempt(read_line, text_of(data)),
        seeds=(
            b"find . -name '*.py' -exec rm {} + | tee $(date) <<E\nx\nE\n",
            b'for i in 1 2; do echo "${i%x}"; done & (ls; `pwd`)',
        ),
    ),
    "page-tokens": Parser(parse=parse_page_token, seeds=(b"QUJDREVGR0hJSktMTU5PUA", b"a")),
    "mcp-messages": Parser(
        parse=lambda data: attempt(read_message, data, MAX_BYTES),
        seeds=(
            b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "_meta": {}}}',
            b'{"jsonrpc": "2.0", "id": "x", "error": {"code": -1, "message": "m"}}',
        ),
    ),
    "http-heads": Parser(
        parse=parse_http_head,
        seeds=(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked"),
    ),
    "extraction": Parser(
        parse=lambda data: attempt(compile_extract, text_of(data)),
        seeds=(b"$.a[?@.b > 1 && match(@.c, 'x')]..d[1:2]", b"(?P<a>x+)\\d", b"$"),
    ),
    "requests": Parser(
        parse=lambda data: attempt(read_request, data),
        files=("tests/seeds/fixtures/**/*.yaml", "tests/adoption/formats/request_*/*"),
    ),
    "depot-manifests": Parser(
        parse=lambda data: attempt(decode_manifest, data, "manifest"),
        seeds=(b'{"name": "a", "version": "1.0.0", "files": [], "hash": "", "signature": null}',),
    ),
    "bundles": Parser(
        parse=parse_stored,
        seeds=(
            b'{"slug": "acme", "displayName": "Acme", "isEnabled": true}',
            (
                b'{"displayName": "W", "type": "http", "isEnabled": true, "argSchema": {"type": "object"}, "outputSchema": {}, '
                b'"tags": ["a"], "schemaVersion": "toolcrib-1", "impl": {"urlTemplate": "https://x.example/?q=${city}"}}'
            ),
        ),
        files=("tests/adoption/formats/bundle_*/*.json",),
    ),
    "schemas": Parser(
        parse=parse_schema,
        seeds=(
            b'{"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"pattern": "^a+$"}}}',
            b'{"allOf": [{"uniqueItems": true}, {"if": true, "then": {"const": 1}}]}',
        ),
    ),
    "signed-tokens": Parser(
        parse=lambda data: attempt(read_token, text_of(data)), seeds=(b"eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln",)
    ),
    "python-files": Parser(
        parse=in_formats("weather.py", PlainFile(), PythonProgram(), FrameworkFile()),
        files=("tests/adoption/python/*.py", "tests/adoption/ecosystems/**/*.py"),
    ),
    "scripts-python": Parser(
        parse=in_formats("weather.py", ScriptFile(ROOT)),
        files=("tests/seeds/fixtures/**/*.py", "tests/adoption/formats/script_*/**/*.py"),
    ),
    "scripts-javascript": Parser(
        parse=in_formats("weather.js", ScriptFile(ROOT)), files=("tests/adoption/formats/script_*/**/*.js",)
    ),
    "scripts-bash": Parser(
        parse=in_formats("weather.sh", ScriptFile(ROOT)), files=("tests/adoption/formats/script_*/**/*.sh",)
    ),
    "scripts-yaml": Parser(
        parse=in_formats("weather.yaml", ScriptFile(ROOT)),
        files=("tests/seeds/fixtures/**/*.yaml", "tests/adoption/formats/script_*/**/*.yaml"),
    ),
    "javascript": Parser(parse=parse_javascript, files=("tests/adoption/node/*.*[jt]s",)),
    "bash": Parser(parse=parse_bash, files=("tests/adoption/bash/*.sh",)),
}
