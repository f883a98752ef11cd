"""Read a tool request from its YAML document, lenient by default, and report every problem at once."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import warnings
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from keyword import iskeyword
from typing import TYPE_CHECKING

from toolcrib.features.requests.document.extensions import (
    read_answer_list,
    read_capabilities,
    read_examples,
    read_hosts,
)
from toolcrib.features.requests.document.fields import CODE_FIELD, RequestText, checked_text, show
from toolcrib.features.requests.document.parameters import output_schema_of, parameters_of, read_inputs, read_outputs
from toolcrib.infra.sandbox.child.neighbours import is_installed
from toolcrib.infra.sandbox.jobs import site_paths
from toolcrib.lib.schema import accepts
from toolcrib.lib.schema_structure import is_json
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MAX_NAME
from toolcrib.model.toolrequest import MISSING, Priority, ToolRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.features.requests.document.fields import RequestFields
    from toolcrib.lib.positions import Steps
    from toolcrib.model.toolrequest import Input


KEYS = (
    *("id", "name", "description", "priority", "requested_by", "experiment_blocked", "inputs", "outputs"),
    *("requirements", "example_usage", "capabilities", "hosts", "examples", "answers"),
)
# An alias of `experiment_blocked`.
EXPERIMENT_ALIAS = "experiment_id"
REQUESTER = "fullsend"
NAME = "github_stargazer_scraper"
MAX_DESCRIPTION = 4_000
MAX_REQUIREMENT = 2_000
MAX_REQUIREMENTS = 100
# A block of Markdown: the blank lines before it, and the code.
FENCED = re.compile(r"(\s*)```[\w+-]*[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)
MAX_WORD = 200
SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
# No file or folder can have these names on Windows.
DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})
# An id is the day of the request and its number on that day.
FORMAT = "req_YYYYMMDD_NNN"
LAST_NUMBER = 999

_ID = re.compile(r"req_([0-9]{8})_[0-9]{3}")
# Other clients use other ids, which become parts of keys and file names.
_SAFE = re.compile(r"req_[A-Za-z0-9_.-]{1,60}")

MAX_CODE = 20_000
PACKAGE = "tools"

# Beside the standard library: what every tool may import, and what Python or pytest imports by itself.
HOST_MODULES = frozenset({"toolcrib", "sitecustomize", "usercustomize", "conftest"})


def read_request(
    text: str | bytes, *, place: str = "request", strict: bool = False, numbered: bool = True
) -> ToolRequest:
    """Read a request; `strict` refuses a document with warnings, and without `numbered` the id may be absent.

    All problems are reported in one VALIDATION, whose details list them and the line of the first.
    """
    source = RequestText(text, place)
    root = source.root()
    request = _Reader(root, source).read(numbered=numbered)
    warnings = root.report.finish(strict=strict)
    return replace(request, warnings=warnings, digest=content_digest(request))


def name_problem(name: str) -> str:
    """Why it cannot be the name of a tool; empty if it can."""
    if not SNAKE_CASE.fullmatch(name) or len(name) > MAX_NAME or iskeyword(name):
        rule = f"use snake_case of at most {MAX_NAME} characters, no keyword of Python, such as {NAME}"
        return f"{show(name)} cannot be imported as tools.NAME; {rule}"
    if name in HOST_MODULES or is_installed(name, site_paths()):
        return f"{show(name)} is a module that tools import; say the target and the action, such as {NAME}"
    if name in DEVICES:
        return f"{show(name)} is the name of a device on Windows; say the target and the action, such as {NAME}"
    return ""


def same_text(one: str, other: str) -> bool:
    """Whether two documents are the same except for line breaks at the end, which a shell strips."""
    return one.rstrip("\r\n") == other.rstrip("\r\n")


def content_digest(request: ToolRequest) -> str:
    """A digest that two requests share if they ask for the same thing, regardless of author and priority."""
    content = {
        "name": request.name,
        "description": request.description.strip(),
        "inputs": {given.name: (given.schema, given.required, given.samples) for given in request.inputs},
        "outputs": None if request.outputs is None else {given.name: given.schema for given in request.outputs},
        "requirements": request.requirements,
        "example": request.example_usage.strip(),
        "capabilities": sorted(request.capabilities),
        "hosts": request.hosts,
        "examples": [asdict(example) for example in request.examples],
        "answers": [asdict(answer) for answer in request.answers],
        "extra": dict(request.extra),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def is_request_id(text: str) -> bool:
    """Whether it has the format, with a day that exists."""
    found = _ID.fullmatch(text)
    return found is not None and _is_day(found[1])


def id_problem(text: str) -> str:
    """What is unusual about an id that is safe as a key; empty for one of the format."""
    found = _ID.fullmatch(text)
    if found is None:
        return f"{text!r} is taken as it is; write {FORMAT}"
    return "" if _is_day(found[1]) else f"there is no day {found[1]}; write the date of today in {FORMAT}"


def is_safe_id(text: object) -> bool:
    """Whether it is safe as part of a key or a file name."""
    return isinstance(text, str) and _SAFE.fullmatch(text) is not None


def request_day(now: datetime) -> str:
    """The day of an id, in UTC."""
    return f"{now.astimezone(UTC):%Y%m%d}"


def spell_id(day: str, number: int) -> str:
    """The id of the request with that number on that day; raises LIMIT_EXCEEDED when the numbers are used up."""
    if number > LAST_NUMBER:
        message = f"{day} has its {LAST_NUMBER} requests already; file this one tomorrow, or under an id of your own"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"day": day, "limit": LAST_NUMBER})
    text = f"req_{day}_{number:03d}"
    if not is_request_id(text):
        raise ToolError(Kind.VALIDATION, f"there is no request number {number} of day {day!r:.40}; write {FORMAT}")
    return text


class _Reader:
    """Takes the fields of one request, in the order of the format."""

    def __init__(self, root: RequestFields, source: RequestText) -> None:
        self.root = root
        self.source = source

    def read(self, *, numbered: bool) -> ToolRequest:
        root = self.root
        name = self._name()
        priority = self._priority()
        experiment = self._experiment(priority)
        before = root.report.refused
        inputs, outputs = read_inputs(root), read_outputs(root)
        parameters, output_schema = parameters_of(root, inputs), output_schema_of(root, outputs)
        # With refused inputs or outputs the schemas are incomplete, so nothing is checked against them.
        sound = root.report.refused == before
        code = self._unfenced(root.text(CODE_FIELD, MAX_CODE))
        usage = self._usage(code, name, inputs if sound else None)
        return ToolRequest(
            id=self._id(numbered=numbered),
            name=name,
            description=root.required_text("description", "what the tool does", MAX_DESCRIPTION),
            priority=priority,
            requested_by=self._requested_by(),
            text=self.source.text,
            digest="",
            function=usage.function,
            parameters=parameters,
            output_schema=output_schema,
            experiment=experiment,
            inputs=inputs,
            outputs=outputs,
            requirements=self._requirements(),
            example_usage=code,
            shown=usage.shown,
            capabilities=read_capabilities(root),
            hosts=read_hosts(root),
            examples=read_examples(root, parameters if sound else None, output_schema if sound else None),
            answers=read_answer_list(root),
            extra=self._extra(),
        )

    def _id(self, *, numbered: bool) -> str:
        root = self.root
        if "id" not in root and not numbered:
            return ""
        text = root.required_text("id", "req_20240115_001", MAX_WORD)
        if not text.strip():
            return ""
        if not is_safe_id(text):
            root.refuse("id", f"{show(text)} cannot be an id; write {FORMAT}, such as req_20240115_001")
        elif problem := id_problem(text):
            root.warn("id", problem)
        return text

    def _name(self) -> str:
        name = self.root.required_text("name", NAME, MAX_WORD)
        if not name.strip():
            return ""
        if problem := name_problem(name):
            self.root.refuse("name", problem)
            return ""
        if "_" not in name:
            self.root.warn("name", f"{name!r} is one word; say the target and the action, such as {NAME}")
        return name

    def _priority(self) -> Priority:
        root, choices = self.root, ", ".join(Priority)
        written = root.required_text("priority", choices.replace(", ", " | "), MAX_WORD)
        word = written.strip().lower()
        if word not in [*Priority]:
            if word:
                root.refuse("priority", f"{show(written)} is unknown; write one of {choices}")
            return Priority.MEDIUM
        if word != written:
            root.warn("priority", f"{show(written)} is understood as {word}; write {word}")
        return Priority(word)

    def _requested_by(self) -> str:
        requester = self._one_line("requested_by", self.root.required_text("requested_by", REQUESTER, MAX_WORD))
        if requester.strip() and requester != REQUESTER:
            self.root.warn("requested_by", f"{show(requester)} is kept; the format always has {REQUESTER}")
        return requester

    def _experiment(self, priority: Priority) -> str:
        root = self.root
        if EXPERIMENT_ALIAS in root and "experiment_blocked" not in root:
            root.warn(EXPERIMENT_ALIAS, "is understood as experiment_blocked; write that")
            name = EXPERIMENT_ALIAS
        else:
            name = "experiment_blocked"
        experiment = self._one_line(name, root.text(name, MAX_WORD))
        if priority is Priority.HIGH and not experiment:
            root.warn("priority", "is high although no experiment is blocked; write experiment_blocked, or medium")
        if priority is Priority.LOW and experiment:
            root.warn("priority", "is low although an experiment is blocked; write high, or remove experiment_blocked")
        return experiment

    def _one_line(self, name: str, text: str) -> str:
        """A text that becomes part of keys and log lines."""
        if not text.strip():
            return ""
        if not text.isprintable():
            self.root.refuse(name, f"{show(text)} contains characters that are not printable; write it on one line")
        return text

    def _unfenced(self, code: str) -> str:
        """The code of an example without the fence of Markdown around it; its lines stay where they are."""
        found = FENCED.fullmatch(code)
        if found is None:
            return code
        self.root.warn(CODE_FIELD, "stands in a fence (```), which is left out; write the code alone")
        return f"{found[1]}\n{found[2]}\n"

    def _requirement_items(self) -> list[tuple[Steps, object]]:
        """The requirements one by one; of a mapping each with its key in front."""
        written = self.root.values.get("requirements")
        if not isinstance(written, dict) or not written or not all(map(_is_text_or_texts, written.values())):
            return self.root.items("requirements", MAX_REQUIREMENTS)
        self.root.warn("requirements", "is a mapping, whose keys are read as the first words; write a list of texts")
        found: list[tuple[Steps, object]] = []
        for key, value in written.items():
            for item in value if isinstance(value, list) else [value]:
                text = f"{key}: {item}" if isinstance(item, str) else item
                found.append(((*self.root.at, "requirements", key), text))
        if len(found) > MAX_REQUIREMENTS:
            self.root.refuse("requirements", f"has {len(found)} items, the limit is {MAX_REQUIREMENTS}; leave some out")
            return []
        return found

    def _requirements(self) -> tuple[str, ...]:
        found = []
        for at, item in self._requirement_items():
            if isinstance(item, dict):
                self.root.report.refuse(at, "is a mapping because of the colon in it; quote this line")
            elif not isinstance(item, str) or not item.strip():
                self.root.report.refuse(at, f"must be text, not {show(item)}; quote this line")
            else:
                found.append(checked_text(self.root.report, at, item, MAX_REQUIREMENT))
        return tuple(found)

    def _usage(self, code: str, name: str, inputs: tuple[Input, ...] | None) -> ExampleUsage:
        if not code.strip():
            return ExampleUsage(function=name)
        return read_usage(ExampleReport(self.root, name, self.source.code_line), code, inputs)

    def _extra(self) -> Mapping[str, object]:
        known = {*KEYS} if "experiment_blocked" in self.root else {*KEYS, EXPERIMENT_ALIAS}
        self.root.warn_of_unknown_keys(known)
        return {name: value for name, value in self.root.values.items() if name not in known}


def _is_text_or_texts(value: object) -> bool:
    """Whether it is a text, or a list of texts."""
    return all(isinstance(item, str) for item in (value if isinstance(value, list) else [value]))


def _is_day(digits: str) -> bool:
    try:
        datetime.strptime(digits, "%Y%m%d").replace(tzinfo=UTC)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class ExampleUsage:
    """What the example shows: the function of the tool, and the arguments of its first call that are literals."""

    function: str
    shown: Mapping[str, object] = field(default_factory=dict)


class ExampleReport:
    """Reports problems of the example's code; `line_of` maps its lines to those of the document."""

    def __init__(self, root: RequestFields, name: str, line_of: Callable[[int], int]) -> None:
        self.name = name
        self.module = f"{PACKAGE}.{name}"
        self._root = root
        self._line_of = line_of

    def refuse(self, line: int, text: str) -> None:
        """Note what is wrong with a line of the code."""
        self._root.report.refuse((*self._root.at, CODE_FIELD), text, self._line_of(line))

    def warn(self, line: int, text: str) -> None:
        """Note what its author should know about a line of the code."""
        self._root.report.warn((*self._root.at, CODE_FIELD), text, self._line_of(line))


def read_usage(example: ExampleReport, code: str, inputs: Iterable[Input] | None) -> ExampleUsage:
    """The interface that the example uses; what contradicts the rest of the request is refused.

    If the name is empty or `inputs` is None, because they were refused, that is not checked.
    """
    tree = _parse(example, code)
    if tree is None or not example.name:
        return ExampleUsage(function=example.name)
    nodes = sorted(
        (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)),
        key=lambda node: (node.lineno, node.col_offset),
    )
    names = _Names(example)
    for node in nodes:
        names.note(node)
    calls = [(found, node) for node in nodes if isinstance(node, ast.Call) and (found := names.function_of(node.func))]
    function = _choose(example, names, [found for found, _ in calls], len(code.splitlines()))
    if inputs is None:
        return ExampleUsage(function=function)
    known = {given.name: given for given in inputs}
    for _, call in calls:
        _check_call(example, call, known)
    return ExampleUsage(function=function, shown=_literals(example, calls[0][1], known) if calls else {})


def _parse(example: ExampleReport, code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except SyntaxError as error:
        example.refuse(error.lineno or 1, f"is not Python: {error.msg}; correct the line")
    except (RecursionError, MemoryError, ValueError):
        example.refuse(1, "is nested too deeply to be read; make it simpler")
    return None


class _Names:
    """What the names of the code mean, as far as they come from the packages of tools."""

    def __init__(self, example: ExampleReport) -> None:
        self.functions: dict[str, str] = {}
        self.first_line = 0
        self.others: list[tuple[int, str]] = []
        self._example = example
        self._modules: dict[str, str] = {}

    def note(self, node: ast.Import | ast.ImportFrom | ast.Call) -> None:
        """Record an import."""
        if isinstance(node, ast.Call) or (isinstance(node, ast.ImportFrom) and (node.level or not node.module)):
            return
        for alias in node.names:
            if isinstance(node, ast.Import):
                self._note_module(node.lineno, alias.name, alias.asname or alias.name)
            elif node.module == PACKAGE:
                self._note_module(node.lineno, f"{PACKAGE}.{alias.name}", alias.asname or alias.name)
            elif node.module == self._example.module:
                self._found(node.lineno)
                self.functions[alias.asname or alias.name] = alias.name
            else:
                self._note_other(node.lineno, str(node.module))

    def function_of(self, node: ast.expr) -> str:
        """Which function of the tool an expression names; empty if none."""
        written = _dotted(node)
        if not (self.functions or self._modules):
            return written if written == self._example.name else ""
        holder, _, attribute = written.rpartition(".")
        return attribute if holder in self._modules else self.functions.get(written, "")

    def _note_module(self, line: int, module: str, local: str) -> None:
        if module == self._example.module:
            self._found(line)
            self._modules[local] = module
        else:
            self._note_other(line, module)

    def _note_other(self, line: int, module: str) -> None:
        if module.startswith(f"{PACKAGE}."):
            self.others.append((line, module))

    def _found(self, line: int) -> None:
        self.first_line = self.first_line or line


def _dotted(node: ast.expr) -> str:
    """A name with its dots; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _choose(example: ExampleReport, names: _Names, called: list[str], lines: int) -> str:
    """The one function of the tool; other functions that the example uses are refused."""
    cure = f"write from {example.module} import {example.name}"
    if not names.first_line:
        for line, module in names.others:
            example.refuse(line, f"imports {module[:80]}, but the tool is {example.name}; {cure}")
        if not names.others:
            example.warn(1, f"does not import the tool; {cure}")
        return example.name
    wanted = list(dict.fromkeys([*called, *names.functions.values()]))
    if not called:
        example.warn(lines, "does not call the tool; show a call with keywords")
    if len(wanted) > 1:
        listed = ", ".join(wanted)[:200]
        example.refuse(names.first_line, f"uses {listed}, but a tool has one function; import and call one of them")
    function = wanted[0] if wanted else example.name
    if len(function) > MAX_NAME or not function.isascii() or function.startswith("_") or function == "*":
        example.refuse(names.first_line, f"{show(function)} cannot be the function of a tool; {cure}")
    return function


def _check_call(example: ExampleReport, call: ast.Call, inputs: Mapping[str, Input]) -> None:
    if call.args:
        example.refuse(call.args[0].lineno, "a tool takes keywords alone; write name=value for every argument")
    given = Counter(keyword.arg for keyword in call.keywords if keyword.arg is not None)
    for keyword in call.keywords:
        if keyword.arg is None:
            example.warn(keyword.value.lineno, "what ** hands over cannot be checked; write the keywords out")
        elif keyword.arg not in inputs:
            example.refuse(keyword.lineno, f"{keyword.arg[:80]!r} is not among the inputs; add it there, or remove it")
    for name in sorted(name for name, times in given.items() if times > 1):
        example.refuse(call.lineno, f"{name[:80]!r} is given twice; remove one")
    missing = [name for name, one in inputs.items() if one.required and one.default is MISSING and name not in given]
    if missing and not call.args and given.total() == len(call.keywords):
        example.refuse(call.lineno, f"the required input {', '.join(missing)} is missing in the call; add it")


def _literals(example: ExampleReport, call: ast.Call, inputs: Mapping[str, Input]) -> dict[str, object]:
    shown: dict[str, object] = {}
    for keyword in call.keywords:
        given = inputs.get(keyword.arg or "")
        if given is None:
            continue
        try:
            value: object = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, RecursionError, MemoryError):
            continue
        if not is_json(value):
            continue
        if accepts(given.schema, value):
            shown[given.name] = value
        else:
            example.warn(keyword.lineno, f"{show(value)} is not what the input {given.name} takes; correct one of them")
    return shown
