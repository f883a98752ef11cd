"""Where the command line begins and ends: `crib call` goes the short way, and nothing that can go wrong shows a traceback."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from toolcrib.model.errors import SettingsError, ToolError
from toolcrib.toolkit.cli.console import ExitCode, WrongUseError, code_of_error, complain, complain_about
from toolcrib.toolkit.cli.options import wants_help

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line on these words, by default those of the process; the exit code."""
    try:
        code = _dispatch(sys.argv[1:] if words is None else words)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _give_up_stdout()
        return ExitCode.READER_GONE
    except KeyboardInterrupt:
        complain("interrupted")
        return ExitCode.INTERRUPTED
    except (WrongUseError, SettingsError) as problem:
        complain(str(problem))
        return ExitCode.WRONG_USE
    except ToolError as problem:
        complain_about(problem)
        return code_of_error(problem)
    except OSError as problem:
        complain(f"{problem.filename or 'output'}: {problem.strerror}")
        _give_up_stdout()
        return ExitCode.FAILED
    return code


def _dispatch(words: Sequence[str]) -> int:
    if words[:1] == ["call"] and not wants_help(words):
        from toolcrib.interfaces.cli.call_command import call_command

        return call_command(words[1:])
    from toolcrib.interfaces.cli.commands import run

    return run(words)


def _give_up_stdout() -> None:
    """Let the interpreter flush into nothing on its way out; a second failure would be printed."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
