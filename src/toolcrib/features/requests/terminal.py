"""What the commands about requests ask and print on a terminal."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.features.requests.document import name_problem, read_request
from toolcrib.features.requests.document.extensions import HOST_CURE, is_host_pattern, read_answers
from toolcrib.features.requests.document.parameters import OUTPUT_NAME, OWN_TYPES, is_argument_name
from toolcrib.features.requests.document.writer import write_request
from toolcrib.features.requests.tracker import MAX_LISTED, MAX_TEXT_BYTES
from toolcrib.lib.names import is_capability
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Allowance, Priority, Status
from toolcrib.toolkit.cli import (
    ExitCode,
    WrongUseError,
    complain,
    count,
    on_one_line,
    say,
    say_json,
    say_text,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolcrib.model.toolrequest import Event, Filed, Submitted
    from toolcrib.toolkit.client_protocol import AnyRequests


COLUMNS = ("id", "status", "priority", "tool", "requesters", "filed", "what")
STANDARD_INPUT = "-"
ID_PREFIX = "req_"
MOST_ANSWERS = 50
MOST_TRIES = 5
# Control characters and bytes that are not UTF-8.
_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def find_id(requests: AnyRequests, word: str) -> str:
    """The id of a request; the name of a tool means the newest request for it."""
    if word.startswith(ID_PREFIX):
        return word
    name = word.replace("-", "_")
    found = [filed for filed in requests.list(limit=MAX_LISTED) if filed.name == name]
    if not found:
        message = f"there is no request {word!r:.80}, nor one for a tool of that name; see: crib request list"
        raise ToolError(Kind.NOT_FOUND, message)
    return found[-1].id


def read_file(name: str) -> str:
    """The text of a file, or of standard input."""
    if name == STANDARD_INPUT:
        data = sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
    else:
        with Path(name).open("rb") as file:
            data = file.read(MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        raise ToolError(Kind.LIMIT_EXCEEDED, f"{name} has more than {MAX_TEXT_BYTES} bytes; ask for less at once")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        message = f"{name}: not UTF-8 at byte {problem.start}; save it as UTF-8"
        raise ToolError(Kind.VALIDATION, message) from problem


def typed_allowance(
    capabilities: tuple[str, ...], hosts: tuple[str, ...], answers: str | None, *, unproved: bool
) -> Allowance:
    """What the operator allows, as it was typed; `answers` is a file of recorded answers."""
    for name in capabilities:
        if not is_capability(name):
            raise WrongUseError(
                f"--capability: {name!r:.80} is not a capability; write a dotted name, such as net.http"
            )
    for host in hosts:
        if not is_host_pattern(host):
            raise WrongUseError(f"--host: {host!r:.80} is not a host; {HOST_CURE}")
    recorded = () if answers is None else read_answers(read_file(answers), place=answers)
    return Allowance(capabilities=frozenset(capabilities), hosts=hosts, answers=recorded, unproved=unproved)


def place_of(file: str | None) -> str:
    """The name of the text in messages."""
    return "request" if file is None or file == STANDARD_INPUT else file


def lacks_only_its_id(text: str) -> bool:
    """Whether the text is a valid request except for its missing id."""
    try:
        return not read_request(text, numbered=False).id
    except ToolError:
        return False


def show_text(text: str, place: str, *, strict: bool, as_json: bool) -> ExitCode:
    """Print a request as it would be filed; raises ToolError if it could not be."""
    request = read_request(text, place=place, strict=strict, numbered=False)
    for warning in request.warnings:
        complain(f"warning: {warning}")
    if as_json:
        say_json({"name": request.name, "warnings": list(request.warnings), "yaml": text})
    else:
        say_text(text.rstrip("\n"))
    return ExitCode.DONE


def tell_submitted(submitted: Submitted, *, as_json: bool) -> ExitCode:
    """Print the id to standard output, and the rest to standard error."""
    filed = submitted.filed
    for warning in submitted.warnings:
        complain(f"warning: {warning}")
    if as_json:
        say_json(submitted.to_json())
        return ExitCode.DONE
    say(on_one_line(filed.id))
    if submitted.merged:
        same = filed.merged_into or filed.id
        complain(f"{same} asks for the same, priority {filed.priority}; it is built once")
    complain(f"follow it with: crib request watch {filed.id}")
    return ExitCode.DONE


def tell_end(filed: Filed, *, as_json: bool) -> ExitCode:
    """Say how a request ended."""
    if as_json:
        say_json(filed.to_json())
    elif filed.status is Status.READY:
        say(on_one_line(f"{filed.id} is ready: {filed.tool}; try: crib show {filed.name}"))
    else:
        complain(f"{filed.id} is {filed.status}: {filed.error}" if filed.error else f"{filed.id} is {filed.status}")
    return code_of(filed)


def code_of(filed: Filed) -> ExitCode:
    """The exit code of a command that waited for a request."""
    return ExitCode.DONE if filed.status is Status.READY else ExitCode.FAILED


def tell_event(event: Event) -> None:
    """Say what happened to a request."""
    lines = event.text.splitlines() or [""]
    say(on_one_line(f"{event.at}  {event.step:<10}  {lines[0]}"))
    for line in lines[1:]:
        say(on_one_line(f"{'':>{len(event.at)}}  {'':<10}  {line}").rstrip())


def package_of(requests: AnyRequests, request_id: str, path: str | None) -> Path:
    """The package to deliver: the named path, or the one in the Builder's workspace."""
    if path is not None:
        named = Path(path)
        if named.is_file() and named.suffix != ".py":
            raise WrongUseError(f"{named} is not a Python file; name NAME.py, by the name of the tool, or its folder")
        return named
    package = requests.package(request_id)
    if package is None:
        message = f"{request_id} has no workspace here; write: crib request deliver {request_id} PATH"
        raise WrongUseError(message)
    return package


def spell_allowance(allowance: Allowance) -> str:
    """The allowance of a request in words; empty if it allows nothing."""
    allowed = [*sorted(allowance.capabilities), *allowance.hosts]
    if allowance.answers:
        allowed.append(count(len(allowance.answers), "recorded answer"))
    if allowance.unproved:
        allowed.append("unproved")
    return ", ".join(allowed)


def facts_of(filed: Filed) -> list[tuple[str, str]]:
    """Every fact about a request except its text and history."""
    return [
        ("id", filed.id),
        ("tool", filed.tool or filed.name),
        ("status", f"{filed.status}, held for a person" if filed.held else str(filed.status)),
        ("priority", str(filed.priority)),
        ("experiment", filed.experiment),
        ("error", filed.error),
        ("merged into", filed.merged_into),
        ("requesters", str(filed.requesters) if filed.requesters > 1 else ""),
        ("builder", filed.owner),
        ("begun", count(filed.attempts, "time") if filed.attempts else ""),
        ("allowed", spell_allowance(filed.allowance)),
        ("filed", filed.created_at),
        ("changed", filed.updated_at),
    ]


def next_step(filed: Filed) -> str:
    """The next command for the reader; empty if there is none."""
    if filed.held:
        return f"next: crib request deliver {filed.id} PATH"
    if filed.status is Status.PENDING:
        return "next: crib builder run"
    if filed.status is Status.FAILED:
        return f"next: crib request retry {filed.id}"
    return ""


def row_of(filed: Filed) -> tuple[str, ...]:
    """A request in a list."""
    what = filed.error or filed.tool or (f"like {filed.merged_into}" if filed.merged_into else "")
    return filed.id, filed.status, filed.priority, filed.name, str(filed.requesters), filed.created_at, what[:120]


def ask_for_request() -> str:
    """Ask for the fields of a request on the terminal; raises WrongUseError after too many invalid answers."""
    complain("describe the tool (an empty line ends a list)")
    fields: dict[str, object] = {
        "name": _ask("name, as action_and_target", check=name_problem),
        "description": _ask("what it does", check=_empty_problem),
        "priority": _ask(
            "priority: high, medium or low", "medium", check=lambda text: _choice_problem(text, tuple(Priority))
        ),
        "requested_by": "fullsend",
    }
    if experiment := _ask("experiment that waits for it, if any"):
        fields["experiment_blocked"] = experiment
    if inputs := [_input(name) for name in _listed("input", _argument_problem)]:
        fields["inputs"] = inputs
    if outputs := [_output(name) for name in _listed("output", _output_problem)]:
        fields["outputs"] = outputs
    if requirements := list(_listed("requirement")):
        fields["requirements"] = requirements
    return write_request(fields)


def _input(name: str) -> dict[str, object]:
    described: dict[str, object] = {
        "name": name,
        "type": _ask_type(name),
        "description": _ask(f"what {name} is", check=_empty_problem),
    }
    if _agree(f"is {name} required?", "y"):
        described["required"] = True
    return described


def _output(name: str) -> dict[str, object]:
    kind = _ask_type(name)
    return {"name": name, "type": f"{kind} | null" if _agree(f"may {name} be null?", "n") else kind}


def _ask_type(name: str) -> str:
    return _ask(
        f"type of {name}: {', '.join(OWN_TYPES)}", "string", check=lambda text: _choice_problem(text, OWN_TYPES)
    )


def _agree(question: str, default: str) -> bool:
    return _ask(f"{question} y or n", default, check=lambda text: _choice_problem(text, ("y", "n"))) == "y"


def _listed(noun: str, check: Callable[[str], str] | None = None) -> Iterator[str]:
    """The answers up to an empty line; those that are checked are listed once."""
    named: set[str] = set()

    def look(text: str) -> str:
        if not text or check is None:
            return ""
        return f"{text} is listed already; name another" if text in named else check(text)

    for number in range(1, MOST_ANSWERS + 1):
        answer = _ask(f"{noun} {number}", check=look)
        if not answer:
            return
        named.add(answer)
        yield answer


def _ask(question: str, default: str = "", check: Callable[[str], str] | None = None) -> str:
    """Ask until the answer is valid; an empty one means the default."""
    for _ in range(MOST_TRIES):
        sys.stderr.write(visible(f"{question} [{default}]: " if default else f"{question}: "))
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            break
        answer = line.strip() or default
        problem = _text_problem(answer) or ("" if check is None else check(answer))
        if not problem:
            return answer
        complain(problem)
    raise WrongUseError("nothing is filed; write the request to a file: crib request new FILE")


def _argument_problem(text: str) -> str:
    return "" if is_argument_name(text) else "it is an argument in Python; use letters, digits and '_', and no keyword"


def _output_problem(text: str) -> str:
    return "" if OUTPUT_NAME.fullmatch(text) else "it is a key of the answer; use letters, digits, '_', '-' and '.'"


def _text_problem(text: str) -> str:
    return "it contains control characters; write it without them" if _UNWRITABLE.search(text) else ""


def _empty_problem(text: str) -> str:
    return "" if text else "say it in a few words"


def _choice_problem(text: str, words: tuple[str, ...]) -> str:
    return "" if text in words else f"write one of {', '.join(words)}"
