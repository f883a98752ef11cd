"""Read a request document: lenient by default, and with every problem reported at once."""

from __future__ import annotations

import hashlib
import json
import keyword
import re
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from toolcrib.features.requests.document.example_usage import MAX_CODE, Example, Usage, read_usage
from toolcrib.features.requests.document.extensions import (
    read_answer_list,
    read_capabilities,
    read_examples,
    read_hosts,
)
from toolcrib.features.requests.document.fields import CODE_FIELD, Source, checked_text, show
from toolcrib.features.requests.document.parameters import output_schema_of, parameters_of, read_inputs, read_outputs
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MAX_NAME
from toolcrib.model.toolrequest import Priority, ToolRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.features.requests.document.fields import Fields
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
MAX_WORD = 200
SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
# An id is the day of the request and its number on that day.
FORMAT = "req_YYYYMMDD_NNN"
LAST_NUMBER = 999

_ID = re.compile(r"req_([0-9]{8})_[0-9]{3}")
# Other clients use other ids, which become parts of keys and file names.
_SAFE = re.compile(r"req_[A-Za-z0-9_.-]{1,60}")


def read_request(
    text: str | bytes, *, place: str = "request", strict: bool = False, numbered: bool = True
) -> ToolRequest:
    """Read a request; `strict` refuses a document with warnings, and without `numbered` the id may be absent.

    All problems are reported in one VALIDATION, whose details list them and the line of the first.
    """
    source = Source(text, place)
    root = source.root()
    request = _Reader(root, source).read(numbered=numbered)
    warnings = root.report.finish(strict=strict)
    return replace(request, warnings=warnings, wish=wish_digest(request))


def name_problem(name: str) -> str:
    """Why it cannot be the name of a tool; empty if it can."""
    if SNAKE_CASE.fullmatch(name) and len(name) <= MAX_NAME and not keyword.iskeyword(name):
        return ""
    rule = f"use snake_case of at most {MAX_NAME} characters, no keyword of Python, such as {NAME}"
    return f"{show(name)} cannot be imported as tools.NAME; {rule}"


def same_text(one: str, other: str) -> bool:
    """Whether two documents are the same except for line breaks at the end, which a shell strips."""
    return one.rstrip("\r\n") == other.rstrip("\r\n")


def wish_digest(request: ToolRequest) -> str:
    """A digest that two requests share if they ask for the same thing, whatever their author and priority."""
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

    def __init__(self, root: Fields, source: Source) -> None:
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
        code = root.text(CODE_FIELD, MAX_CODE)
        usage = self._usage(code, name, inputs if sound else None)
        return ToolRequest(
            id=self._id(numbered=numbered),
            name=name,
            description=root.required_text("description", "what the tool does", MAX_DESCRIPTION),
            priority=priority,
            requested_by=self._requested_by(),
            text=self.source.text,
            wish="",
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

    def _requirements(self) -> tuple[str, ...]:
        found = []
        for at, item in self.root.items("requirements", MAX_REQUIREMENTS):
            if isinstance(item, dict):
                self.root.report.refuse(at, "is a mapping because of the colon in it; quote this line")
            elif not isinstance(item, str) or not item.strip():
                self.root.report.refuse(at, f"must be text, not {show(item)}; quote this line")
            else:
                found.append(checked_text(self.root.report, at, item, MAX_REQUIREMENT))
        return tuple(found)

    def _usage(self, code: str, name: str, inputs: tuple[Input, ...] | None) -> Usage:
        if not code.strip():
            return Usage(function=name)
        return read_usage(Example(self.root, name, self.source.code_line), code, inputs)

    def _extra(self) -> Mapping[str, object]:
        known = {*KEYS} if "experiment_blocked" in self.root else {*KEYS, EXPERIMENT_ALIAS}
        self.root.warn_of_unknown_keys(known)
        return {name: value for name, value in self.root.values.items() if name not in known}


def _is_day(digits: str) -> bool:
    try:
        datetime.strptime(digits, "%Y%m%d").replace(tzinfo=UTC)
    except ValueError:
        return False
    return True
