"""`crib logs`: show the journal of the project and logs of its server, one readable line per entry, ordered by time."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click
import orjson

from toolcrib.model.call import CALL
from toolcrib.toolkit.cli import (
    ExitCode,
    WrongUseError,
    complain,
    on_one_line,
    paint,
    require_project,
    say,
    say_json_line,
    visible,
)
from toolcrib.toolkit.cli.group import example, json_option, pass_opener, project_option
from toolcrib.toolkit.client_protocol import ProjectCrib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import BinaryIO

    from toolcrib.infra.secrets.lookup import Secrets
    from toolcrib.toolkit.cli.group import Opener

    Line = dict[str, object]

STANDARD_INPUT = "-"
SHOWN_LINES = 50
LOOK_SECONDS = 0.3
# A longer line cannot be an entry of a log.
MAX_LINE_BYTES = 1_000_000
JOURNAL = "journal"
# Keys that the start of a line shows already, or that only programs need.
OMITTED = frozenset(
    {"event", "time", "tool", "caller", "ok", "ms", "error", "toolId", "id", "level", "logger", "stdout", "stderr"}
    | {"traceback"}
)
REQUEST = ("status", "method", "route", "ms")


class LogsCrib(ProjectCrib, Protocol):
    """What this command uses of a crib: its secrets, which are masked in every line."""

    @property
    def secrets(self) -> Secrets:
        """Its secrets."""


@click.command(
    "logs", epilog=example("crib logs --follow", "crib logs --failed --tool weather", "crib logs server.log --follow")
)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("-f", "--follow", is_flag=True, help="Print new entries as they are logged, until interrupted.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(0),
    default=SHOWN_LINES,
    show_default=True,
    help="How many past entries to show.",
)
@click.option("--tool", metavar="NAME", help="Only calls of this tool.")
@click.option("--failed", is_flag=True, help="Only failures.")
@project_option
@json_option
@pass_opener
def logs(
    opener: Opener[LogsCrib],
    files: Sequence[str],
    *,
    follow: bool,
    lines: int,
    tool: str | None,
    failed: bool,
    as_json: bool,
) -> int:
    """Show calls, and logs of the server, readably.

    Calls are those of the journal. Each FILE is what `crib serve` wrote to its standard error; - is standard input, as in
    `crib serve 2>&1 | crib logs -`. All are shown together, in the order of their times.
    """
    with opener.open_local() as crib:
        require_project(crib.settings)
        folder = None if crib.settings.data is None else crib.settings.data / JOURNAL
        # A line may be older than the secret in it, and other programs may write to such a file.
        hide = crib.secrets.masking.hide_in
    write = _show_json if as_json else _show

    def show(line: Line) -> None:
        hidden = hide(line)
        write(hidden if isinstance(hidden, dict) else {})

    wanted = LogFilter(tool, failed=failed)
    if STANDARD_INPUT in files:
        if len(files) > 1:
            raise WrongUseError("- is read alone; leave the other files out")
        return _show_input(wanted, show)
    readers = [FileReader(path) for path in map(Path, files)]
    missing = [reader.path for reader in readers if not reader.path.is_file()]
    if missing:
        raise WrongUseError(f"{missing[0]} is not a file; name what `crib serve` wrote: crib serve 2> server.log")
    journal = JournalReader(folder)
    past = sorted(filter(wanted, _read_all(journal, readers)), key=_moment)
    for line in past[max(0, len(past) - lines) :]:
        show(line)
    if not past and not follow:
        complain("nothing is logged yet" if not (tool or failed) else "nothing of this kind is logged")
    while follow:
        time.sleep(LOOK_SECONDS)
        for line in sorted(filter(wanted, _read_all(journal, readers)), key=_moment):
            show(line)
        sys.stdout.flush()
    return ExitCode.DONE


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which lines to show."""

    tool: str | None
    failed: bool = False

    def __call__(self, line: Line) -> bool:
        """Whether to show the line."""
        if self.tool is not None and self.tool not in _names_of(line):
            return False
        return not self.failed or _has_failed(line)


@dataclass(slots=True)
class FileReader:
    """Reads the lines that were added to a file since it was last read."""

    path: Path
    _read: int = 0

    def __call__(self) -> Iterator[Line]:
        """The new lines; an incomplete one is left for the next time."""
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._read:
                    self._read = 0  # the file was truncated
                file.seek(self._read)
                while (text := file.readline(MAX_LINE_BYTES)).endswith(b"\n"):
                    self._read = file.tell()
                    yield read_log_line(text)
        except OSError as problem:
            complain(f"{self.path}: {problem.strerror}")


@dataclass(slots=True)
class JournalReader:
    """Reads new lines of the journal, which has a file per day."""

    folder: Path | None
    _files: dict[Path, FileReader] = field(default_factory=dict)

    def __call__(self) -> Iterator[Line]:
        """The new lines of all its files."""
        if self.folder is not None:
            for path in sorted(self.folder.glob("*.jsonl")):
                yield from self._files.setdefault(path, FileReader(path))()


def read_log_line(text: bytes) -> Line:
    """Parse a line of a log; one that is not JSON is shown unchanged."""
    try:
        line = orjson.loads(text)
    except orjson.JSONDecodeError:
        line = None
    return line if isinstance(line, dict) else {"event": text.decode("utf-8", "replace").rstrip("\n")}


def _read_all(journal: JournalReader, readers: Iterable[FileReader]) -> Iterator[Line]:
    yield from journal()
    for reader in readers:
        yield from reader()


def _show_input(wanted: LogFilter, show: Callable[[Line], None]) -> ExitCode:
    stream: BinaryIO = sys.stdin.buffer
    while text := stream.readline(MAX_LINE_BYTES):
        if wanted(line := read_log_line(text)):
            show(line)
            sys.stdout.flush()
    return ExitCode.DONE


def _show_json(line: Line) -> None:
    say_json_line(line)


def _show(line: Line) -> None:
    say(to_text(line))


def to_text(line: Line) -> str:
    """An entry as text: time, event, outcome and other facts on one line; below it the output of the tool and the traceback."""
    moment = f"{_clock(line)} " if _moment(line) else ""
    more = [f"{name}={on_one_line(str(value))}" for name, value in line.items() if name not in {*OMITTED, *REQUEST}]
    first = " ".join([*_what(line), *more])
    below = [str(line[name]).rstrip() for name in ("stdout", "stderr", "traceback") if line.get(name)]
    lines = [f"{moment}{first}", *(f"         {visible(text)}" for part in below for text in part.splitlines())]
    return "\n".join(lines)


def _what(line: Line) -> Iterator[str]:
    if line.get("event") == CALL:
        is_ok = line.get("ok") is True
        yield paint("ok    " if is_ok else "failed", "green" if is_ok else "red", sys.stdout)
        yield f"{on_one_line(str(line.get('tool')))} for {on_one_line(str(line.get('caller')))}"
        yield f"{_number(line.get('ms')):.1f} ms"
        if not is_ok:
            yield paint(on_one_line(str(line.get("error"))), "red", sys.stdout)
    elif "status" in line:
        status = str(line["status"])
        colour = "red" if status >= "5" else "yellow" if status >= "4" else "green"
        yield paint(status, colour, sys.stdout)
        yield on_one_line(f"{line.get('method')} {line.get('route')} for {line.get('caller') or 'an unknown caller'}")
        yield f"{_number(line.get('ms')):.1f} ms"
    else:
        level = str(line.get("level", ""))
        if level:
            yield paint(level, {"error": "red", "warning": "yellow"}.get(level, "grey"), sys.stdout)
        yield on_one_line(str(line.get("event")))


def _names_of(line: Line) -> set[str]:
    """The names that select the tool of a line: its address or name, with `-` or `_`."""
    address = str(line.get("tool", ""))
    name = address.rpartition("/")[2].partition("@")[0]
    return {address, address.partition("@")[0], name, name.replace("-", "_"), name.replace("_", "-")}


def _has_failed(line: Line) -> bool:
    return line.get("ok") is False or line.get("level") == "error" or _number(line.get("status")) >= 400  # noqa: PLR2004 - HTTP


def _moment(line: Line) -> float:
    told = line.get("time")
    if isinstance(told, str):
        try:
            return datetime.fromisoformat(told).timestamp()
        except ValueError:
            return 0.0
    return _number(told)


def _clock(line: Line) -> str:
    return datetime.fromtimestamp(_moment(line), tz=UTC).astimezone().strftime("%m-%d %H:%M:%S")


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
