"""`crib request …` and `crib experiments`: file, show, follow and decide requests, here or on a server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.features.requests.document.extensions import HOST_CURE, is_host_pattern, read_answers
from toolcrib.features.requests.document.reader import read_request
from toolcrib.features.requests.interview import ask_for_wish
from toolcrib.lib.names import is_capability
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Allowance, Status
from toolcrib.toolkit.cli.console import (
    ExitCode,
    WrongUseError,
    complain,
    count,
    may_ask,
    on_one_line,
    say,
    say_facts,
    say_json,
    say_table,
    say_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.core.client_protocol import AnyCrib, AnyRequests
    from toolcrib.model.toolrequest import Event, Filed, RecordedAnswer, Submitted

COLUMNS = ("id", "status", "priority", "tool", "wishes", "filed", "what")
EXPERIMENT_COLUMNS = ("experiment", "status", "waits for", "requests", "released")
STANDARD_INPUT = "-"
ID_PREFIX = "req_"
MOST_LISTED = 1_000
MAX_FILE_BYTES = 256_000


def file_wish(crib: AnyCrib, file: str | None, *, dry_run: bool, strict: bool, as_json: bool) -> ExitCode:
    """`crib request new [FILE]`."""
    if file is None and not may_ask():
        raise WrongUseError("there is no terminal to ask on; write: crib request new FILE")
    text = ask_for_wish() if file is None else read_file(file)
    place = _place_of(file)
    if dry_run:
        return _show_wish(text, place, strict=strict)
    return _tell(crib.requests.new(text, strict=strict or None, place=place), as_json=as_json)


def submit_request(crib: AnyCrib, file: str, *, strict: bool, as_json: bool) -> ExitCode:
    """`crib request submit FILE`."""
    text, place = read_file(file), _place_of(file)
    if _lacks_only_its_id(text):
        raise ToolError(Kind.VALIDATION, f"{place}: id: is missing; to have it numbered write: crib request new {file}")
    return _tell(crib.requests.submit(text, strict=strict or None, place=place), as_json=as_json)


def list_requests(crib: AnyCrib, status: str | None, *, limit: int, as_json: bool) -> ExitCode:
    """`crib request list`."""
    found = crib.requests.list(None if status is None else Status(status), limit=limit)
    if as_json:
        say_json([filed.to_json() for filed in found])
    elif found:
        say_table(COLUMNS, [_row(filed) for filed in found])
    else:
        say("there are no such requests; make one with: crib request new")
    return ExitCode.DONE


def show_request(crib: AnyCrib, word: str, *, as_yaml: bool, as_json: bool) -> ExitCode:
    """`crib request show ID`."""
    request_id = meant_by(crib, word)
    filed = crib.requests.show(request_id)
    events = crib.requests.history(request_id)
    if as_json:
        say_json({**filed.to_json(), "history": [event.to_json() for event in events]})
        return ExitCode.DONE
    if as_yaml:
        say_text(filed.text.rstrip("\n"))
        return ExitCode.DONE
    say_facts(_facts(filed))
    for event in events:
        _tell_event(event)
    if hint := _next_step(filed):
        say(hint)
    return ExitCode.DONE


def watch_request(crib: AnyCrib, word: str, *, as_json: bool) -> ExitCode:
    """`crib request watch ID`: every event as it comes; how it ended is the exit code."""

    def hear(event: Event) -> None:
        if as_json:
            _say_line(event.to_json())
        else:
            _tell_event(event)
        # Whoever reads this through a pipe watches too.
        if sys.stdout is not None:
            sys.stdout.flush()

    filed = crib.requests.follow(meant_by(crib, word), hear)
    if not as_json:
        return _tell_end(filed, as_json=False)
    _say_line(filed.to_json())
    return _code_of(filed)


def deliver_tool(crib: AnyCrib, word: str, path: str | None, *, as_json: bool) -> ExitCode:
    """`crib request deliver ID [PATH]`: the gate's complaints, or where the tool is."""
    request_id = meant_by(crib, word)
    hear = (lambda _: None) if as_json else (lambda text: complain(on_one_line(text)))
    try:
        filed = crib.requests.deliver(request_id, _package(crib.requests, request_id, path), hear)
    except ToolError as problem:
        complaints = problem.details.get("complaints")
        if problem.kind is not Kind.VALIDATION or not isinstance(complaints, list):
            raise
        if as_json:
            say_json({"id": request_id, "delivered": False, "complaints": complaints})
        for text in complaints:
            complain(str(text))
        complain(f"not delivered: {count(len(complaints), 'complaint')}; put it right and deliver it again")
        return ExitCode.FAILED
    return _tell_end(filed, as_json=as_json)


def cancel_request(crib: AnyCrib, word: str, reason: str) -> ExitCode:
    """`crib request cancel ID`."""
    filed = crib.requests.cancel(meant_by(crib, word), reason)
    say(on_one_line(f"{filed.id} is {filed.status}"))
    return ExitCode.DONE


def retry_request(crib: AnyCrib, word: str) -> ExitCode:
    """`crib request retry ID`."""
    filed = crib.requests.retry(meant_by(crib, word))
    say(on_one_line(f"{filed.id} is {filed.status}"))
    return ExitCode.DONE


def allow_request(
    crib: AnyCrib,
    word: str,
    capabilities: tuple[str, ...],
    hosts: tuple[str, ...],
    answers: str | None,
    *,
    unproved: bool,
    nothing: bool,
) -> ExitCode:
    """`crib request allow ID`: add what the operator allows, and say what the request has now."""
    is_something = bool(capabilities or hosts or unproved or answers is not None)
    if is_something == nothing:
        options = "--capability, --host, --answers or --unproved"
        raise WrongUseError(f"say what it is allowed: {options}; or take all of that back: --nothing")
    for name in capabilities:
        if not is_capability(name):
            raise WrongUseError(f"--capability: {name!r:.80} is none; write a dotted name, such as net.http")
    for host in hosts:
        if not is_host_pattern(host):
            raise WrongUseError(f"--host: {host!r:.80} is none; {HOST_CURE}")
    allowance = Allowance(
        capabilities=frozenset(capabilities), hosts=hosts, answers=_answers(answers), unproved=unproved
    )
    filed = crib.requests.allow(meant_by(crib, word), allowance)
    say(on_one_line(f"{filed.id} is allowed {spell_allowance(allowance) or 'nothing besides what it says'}"))
    return ExitCode.DONE


def list_experiments(crib: AnyCrib, *, as_json: bool) -> ExitCode:
    """`crib experiments`."""
    found = crib.requests.experiments()
    if as_json:
        say_json([experiment.to_json() for experiment in found])
        return ExitCode.DONE
    if not found:
        say("nothing waits for a tool")
        return ExitCode.DONE
    rows = [
        (
            one.id,
            "ready" if one.ready else "blocked",
            ", ".join(one.waits_for),
            ", ".join(one.requests),
            one.released_at,
        )
        for one in found
    ]
    say_table(EXPERIMENT_COLUMNS, rows)
    return ExitCode.DONE


def meant_by(crib: AnyCrib, word: str) -> str:
    """The id of a request; the name of a tool means the newest request for it."""
    if word.startswith(ID_PREFIX):
        return word
    name = word.replace("-", "_")
    found = [filed for filed in crib.requests.list(limit=MOST_LISTED) if filed.name == name]
    if not found:
        message = f"there is no request {word!r:.80}, nor one for a tool of that name; see: crib request list"
        raise ToolError(Kind.NOT_FOUND, message)
    return found[-1].id


def read_file(name: str) -> str:
    """The text of a file, or of standard input."""
    if name == STANDARD_INPUT:
        data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    else:
        with Path(name).open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(Kind.LIMIT_EXCEEDED, f"{name} has more than {MAX_FILE_BYTES} bytes; ask for less at once")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        message = f"{name}: not UTF-8 at byte {problem.start}; save it as UTF-8"
        raise ToolError(Kind.VALIDATION, message) from problem


def _answers(file: str | None) -> tuple[RecordedAnswer, ...]:
    if file is None:
        return ()
    return read_answers(read_file(file), place=file)


def _place_of(file: str | None) -> str:
    """What complaints call the text."""
    return "request" if file is None or file == STANDARD_INPUT else file


def _lacks_only_its_id(text: str) -> bool:
    try:
        return not read_request(text, numbered=False).id
    except ToolError:
        return False


def _show_wish(text: str, place: str, *, strict: bool) -> ExitCode:
    request = read_request(text, place=place, strict=strict, numbered=False)
    for warning in request.warnings:
        complain(f"warning: {warning}")
    say_text(text.rstrip("\n"))
    return ExitCode.DONE


def _tell(submitted: Submitted, *, as_json: bool) -> ExitCode:
    """Say what was filed: the id on standard output, all else beside it."""
    filed = submitted.filed
    for warning in submitted.warnings:
        complain(f"warning: {warning}")
    if as_json:
        say_json(submitted.to_json())
        return ExitCode.DONE
    say(on_one_line(filed.id))
    if submitted.merged:
        same = filed.merged_into or filed.id
        complain(f"the same is asked for already by {same}, {filed.priority}; it is built once")
    complain(f"follow it with: crib request watch {filed.id}")
    return ExitCode.DONE


def _tell_end(filed: Filed, *, as_json: bool) -> ExitCode:
    if as_json:
        say_json(filed.to_json())
    elif filed.status is Status.READY:
        say(on_one_line(f"{filed.id} is ready: {filed.tool}; try: crib show {filed.name}"))
    else:
        complain(f"{filed.id} is {filed.status}: {filed.error}" if filed.error else f"{filed.id} is {filed.status}")
    return _code_of(filed)


def _code_of(filed: Filed) -> ExitCode:
    return ExitCode.DONE if filed.status is Status.READY else ExitCode.FAILED


def _say_line(value: Mapping[str, object]) -> None:
    """One of several values that are read line by line."""
    say_text(json.dumps(value, ensure_ascii=False))


def _tell_event(event: Event) -> None:
    lines = event.text.splitlines() or [""]
    say(on_one_line(f"{event.at}  {event.step:<10}  {lines[0]}"))
    for line in lines[1:]:
        say(on_one_line(f"{'':>{len(event.at)}}  {'':<10}  {line}").rstrip())


def _package(requests: AnyRequests, request_id: str, path: str | None) -> Path:
    """What is delivered: what was named, else what the Builder laid out."""
    if path is not None:
        _refuse_other_files(Path(path))
        return Path(path)
    package = requests.package(request_id)
    if package is None:
        message = f"no workspace was laid out for {request_id} here; write: crib request deliver {request_id} PATH"
        raise WrongUseError(message)
    return package


def _refuse_other_files(path: Path) -> None:
    if path.is_file() and path.suffix != ".py":
        raise WrongUseError(f"{path} is no file of Python; name NAME.py, by the name of the tool, or its folder")


def spell_allowance(allowance: Allowance) -> str:
    """What the operator adds to a request, in words; empty if that is nothing."""
    allowed = [*sorted(allowance.capabilities), *allowance.hosts]
    if allowance.answers:
        allowed.append(count(len(allowance.answers), "recorded answer"))
    if allowance.unproved:
        allowed.append("unproved")
    return ", ".join(allowed)


def _facts(filed: Filed) -> list[tuple[str, str]]:
    return [
        ("id", filed.id),
        ("tool", filed.tool or filed.name),
        ("status", f"{filed.status}, held for a person" if filed.held else str(filed.status)),
        ("priority", str(filed.priority)),
        ("experiment", filed.experiment),
        ("error", filed.error),
        ("merged into", filed.merged_into),
        ("wishes", str(filed.wishes) if filed.wishes > 1 else ""),
        ("builder", filed.owner),
        ("begun", count(filed.attempts, "time") if filed.attempts else ""),
        ("allowed", spell_allowance(filed.allowance)),
        ("filed", filed.created_at),
        ("changed", filed.updated_at),
    ]


def _next_step(filed: Filed) -> str:
    if filed.held:
        return f"next: crib request deliver {filed.id} PATH"
    if filed.status is Status.PENDING:
        return "next: crib builder run"
    if filed.status is Status.FAILED:
        return f"next: crib request retry {filed.id}"
    return ""


def _row(filed: Filed) -> tuple[str, ...]:
    what = filed.error or filed.tool or (f"like {filed.merged_into}" if filed.merged_into else "")
    return filed.id, filed.status, filed.priority, filed.name, str(filed.wishes), filed.created_at, what[:120]
