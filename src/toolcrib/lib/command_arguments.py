"""Write arguments as command-line words: `--key value`, a bare flag for true, JSON for lists and objects."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Programs that run the word after -c as code.
SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})
KEY = re.compile(r"[^\W\d_][\w.-]*|_[\w.-]+")
# Limits of Linux: one word may have 128 KiB, all words a quarter of the stack, which the environment shares.
MAX_WORD_BYTES = 128 * 1024 - 1
MAX_WORDS_BYTES = 1024 * 1024


def spell(arguments: Mapping[str, object], action: str = "") -> list[str]:
    """The words for a program; the action comes first, and arguments that are null or false are omitted.

    A value that begins with a dash is written as `--name=value`, so that no program parses it as an option.
    """
    words = [action] if action else []
    for name, value in arguments.items():
        if value is None or value is False:
            continue
        _refuse_odd_name(name)
        option, text = f"--{name}", as_text(value)
        if value is True:
            words.append(option)
        elif text.startswith("-"):
            words.append(f"{option}={text}")
        else:
            words += [option, text]
    return words


def as_text(value: object) -> str:
    """A value as one word: text unchanged, empty for null, JSON for everything else."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def check_words(words: Iterable[str], place: str) -> None:
    """Refuse words that cannot be arguments or environment variables of a process."""
    total = 0
    for word in words:
        if "\0" in word:
            raise ToolError(Kind.VALIDATION, f"{place}: an argument of a program cannot contain a NUL; leave it out")
        try:
            size = len(word.encode()) + 1
        except UnicodeEncodeError as problem:
            raise ToolError(
                Kind.VALIDATION, f"{place}: an argument of a program contains a lone surrogate; leave it out"
            ) from problem
        total += size
        if size > MAX_WORD_BYTES or total > MAX_WORDS_BYTES:
            message = (
                f"{place}: a program takes words of {MAX_WORD_BYTES} bytes, {MAX_WORDS_BYTES} in all; "
                "write what is longer to a file and pass its path"
            )
            raise ToolError(Kind.VALIDATION, message)


def _refuse_odd_name(name: str) -> None:
    if KEY.fullmatch(name) is None:
        message = f"argument {name[:80]!r} cannot be written as an option; use letters, digits, '_', '-' and '.'"
        raise ToolError(Kind.VALIDATION, message)
