"""Read the extensions of a request: capabilities, hosts, examples, recorded answers; and what an operator adds to it.

Recorded answers are those of web servers: the network is not used while a tool is proved.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolcrib.features.requests.document.fields import ROOT, RequestFields, RequestReport, RequestText, show
from toolcrib.lib.http_syntax import check_header, check_method, ends_in_number, parse_authority, parse_url
from toolcrib.lib.names import is_capability
from toolcrib.lib.schema import compile_schema
from toolcrib.lib.schema_problems import explain_problems
from toolcrib.model.errors import ToolError
from toolcrib.model.toolrequest import Allowance, Example, RecordedAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.features.requests.document.fields import Steps

    Schema = dict[str, object]

MAX_ITEMS = 64
MAX_TEXT = 200
HOST_CURE = 'write api.example.com, or "*.example.com" for what lies below it, either with a port such as :8443'
EXAMPLE_KEYS = ("input", "arguments", "output", "expected")
ANSWERS = "answers"
MAX_URL = 8_000
MAX_BODY = 100_000
STATUSES = range(200, 600)
ANSWER_KEYS = ("url", "method", "status", "headers", "body")
ALLOWANCE_KEYS = ("capabilities", "hosts", "answers", "unproved")
KNOWN = f"known are {', '.join(ALLOWANCE_KEYS)}"


def read_capabilities(root: RequestFields) -> frozenset[str]:
    """The capabilities that the tool asks for."""
    found = _texts(root, "capabilities", "net.http")
    for index, name in found.items():
        if not is_capability(name):
            root.report.refuse((*root.at, "capabilities", index), f"{show(name)} is not a capability; write net.http")
    return frozenset(found.values())


def read_hosts(root: RequestFields) -> tuple[str, ...] | None:
    """The hosts that it may reach; None if the request does not limit them."""
    if "hosts" not in root:
        return None
    found = _texts(root, "hosts", "api.example.com")
    for index, pattern in found.items():
        if not is_host_pattern(pattern):
            root.report.refuse((*root.at, "hosts", index), f"{show(pattern)} is not a host; {HOST_CURE}")
    return tuple(found.values())


def read_examples(root: RequestFields, parameters: Schema | None, output: Schema | None) -> tuple[Example, ...]:
    """Calls with their expected answers; each has to fit the schemas."""
    entries = root.entries("examples", MAX_ITEMS, "input: …")
    return tuple(given for entry in entries if (given := _read_example(entry, parameters, output)) is not None)


def read_answers(text: str | bytes, *, place: str = ANSWERS) -> tuple[RecordedAnswer, ...]:
    """The recorded answers in a separate document: a list, or the key `answers` with a list."""
    source = RequestText(text, place)
    listed = isinstance(source.document.value, list)

    def line_of(at: Steps) -> int:
        return source.document.line(at[2:] if listed else at[1:])

    values = {ANSWERS: source.document.value} if listed else source.fields()
    root = RequestFields(RequestReport(place, line_of), values, (ROOT,))
    if ANSWERS not in root:
        root.refuse(ANSWERS, "is missing; write answers: and a list, each item with its url")
    answers = read_answer_list(root)
    root.report.finish(strict=False)
    return answers


def read_answer_list(root: RequestFields) -> tuple[RecordedAnswer, ...]:
    """The answers that a mapping holds."""
    return tuple(_read_answer(entry) for entry in root.entries(ANSWERS, MAX_ITEMS, "url: …"))


def read_allowance(document: Mapping[str, object], place: str = "allowance") -> Allowance:
    """Read what an operator allows; all problems are reported in one VALIDATION.

    The lists are written as in a request. What would be ignored is refused, because an operator does not see warnings.
    """
    given = {name: value for name, value in document.items() if value is not None}
    # The values come without their text, so lines are unknown.
    root = RequestFields(RequestReport(place, lambda _: 1), given, (ROOT,))
    for name in document.keys() - given.keys():
        root.refuse(name, "is empty; write a value, or leave it out")
    for name, question in root.unknown_keys(ALLOWANCE_KEYS):
        root.refuse(name, f"cannot be allowed; {question or KNOWN}")
    allowance = Allowance(
        capabilities=read_capabilities(root),
        hosts=read_hosts(root) or (),
        answers=read_answer_list(root),
        unproved=root.switch("unproved") or False,
    )
    root.report.finish(strict=True)
    return allowance


def is_host_pattern(text: str) -> bool:
    """Whether it is a host, or a wildcard for its subdomains."""
    try:
        host, _ = parse_authority(text.removeprefix("*."))
    except ToolError:
        return False
    return not (text.startswith("*.") and (":" in host or ends_in_number(host)))


def _texts(root: RequestFields, name: str, sample: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for index, (at, item) in enumerate(root.items(name, MAX_ITEMS)):
        if isinstance(item, str) and 0 < len(item) <= MAX_TEXT:
            found[index] = item
        else:
            root.report.refuse(at, f"must be a text such as {sample}, not {show(item)}")
    return found


def _read_example(entry: RequestFields, parameters: Schema | None, output: Schema | None) -> Example | None:
    entry.warn_of_unknown_keys(EXAMPLE_KEYS)
    before = entry.report.refused
    given = _one_of(entry, "input", "arguments")
    expected = _one_of(entry, "output", "expected")
    if given is None or expected is None:
        return None
    arguments = entry.values[given]
    if not isinstance(arguments, dict):
        entry.refuse(given, f"must be a mapping of arguments, not {show(arguments)}; write name: value below it")
        return None
    _check_fits(entry, given, parameters)
    _check_fits(entry, expected, output)
    if entry.report.refused > before:
        return None
    return Example(arguments=arguments, expected=entry.values[expected])


def _one_of(entry: RequestFields, name: str, alias: str) -> str | None:
    present = [word for word in (name, alias) if word in entry.values]
    if len(present) == 1:
        return present[0]
    entry.report.refuse(entry.at, f"must have either {name} or {alias}; write {name}: …")
    return None


def _check_fits(entry: RequestFields, name: str, schema: Schema | None) -> None:
    """Refuse an example that contradicts the request."""
    if schema is None:
        return
    value, validator = entry.values[name], compile_schema(schema)
    if not validator.is_valid(value):
        for problem in explain_problems(validator, value, schema):
            entry.refuse(name, f"contradicts the request: {problem}")


def _read_answer(entry: RequestFields) -> RecordedAnswer:
    entry.warn_of_unknown_keys(ANSWER_KEYS)
    body, kind = _read_body(entry)
    headers = _read_headers(entry)
    if kind and "content-type" not in map(str.lower, headers):
        headers["Content-Type"] = kind
    return RecordedAnswer(
        url=_read_url(entry), method=_read_method(entry), status=_read_status(entry), headers=headers, body=body
    )


def _read_url(entry: RequestFields) -> str:
    url = entry.required_text("url", "https://api.example.com/users", longest=MAX_URL)
    try:
        return str(parse_url(url)) if url.strip() else ""
    except ToolError as error:
        entry.refuse("url", error.message)
        return ""


def _read_method(entry: RequestFields) -> str:
    method = (entry.text("method", MAX_TEXT) or "GET").upper()
    try:
        check_method(method)
    except ToolError as error:
        entry.refuse("method", error.message)
    return method


def _read_status(entry: RequestFields) -> int:
    status = entry.values.get("status", 200)
    if type(status) is int and status in STATUSES:
        return status
    entry.refuse("status", f"must be a number from {STATUSES[0]} to {STATUSES[-1]}, not {show(status)}; write 200")
    return 200


def _read_headers(entry: RequestFields) -> dict[str, str]:
    written = entry.values.get("headers", {})
    if not isinstance(written, dict) or len(written) > MAX_ITEMS:
        entry.refuse("headers", f"must be a mapping of at most {MAX_ITEMS} headers; write Content-Type: text/plain")
        return {}
    found: dict[str, str] = {}
    for name, value in written.items():
        text = value if isinstance(value, str) else json.dumps(value)
        try:
            check_header(name, text)
        except ToolError as error:
            entry.refuse("headers", error.message)
        found[name] = text
    return found


def _read_body(entry: RequestFields) -> tuple[str, str]:
    """The body as text, and its content type if it was a value and becomes JSON."""
    body = entry.values.get("body", "")
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    if len(text) > MAX_BODY:
        entry.refuse("body", f"has {len(text)} characters, the limit is {MAX_BODY}; shorten it")
        return "", ""
    return text, "" if isinstance(body, str) else "application/json"
