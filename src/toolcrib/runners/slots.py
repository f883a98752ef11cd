"""What a tool's authors configured, with the slots filled: words, variables, folders and command lines."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.template import Text, compile_template, look_up_in
from toolcrib.pure.words import as_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.pure.template import Place
    from toolcrib.runners.driver import Order

COMMAND = "command"
ARGUMENTS = "args"
VARIABLES = "env"
FOLDER = "cwd"
SHELL = "shell"
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
END_OF_OPTIONS = "--"
CODE_OPTION = re.compile(r"[-+][A-Za-z]*c[A-Za-z]*")

_QUOTES = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|(?P<open>['"])""", re.DOTALL)


class Slots:
    """Fills what the authors of one order configured; the caller's values go where a slot is and nowhere else."""

    def __init__(self, order: Order) -> None:
        properties = order.tool.parameters.get("properties")
        declared = properties if isinstance(properties, dict) else {}
        self._order = order
        self._config = order.chain.config
        self._lookup = look_up_in(declared, order.arguments, order.values)

    def words(self, key: str) -> list[str]:
        """A list of words, or one alone, without slots: what is started is never the caller's choice."""
        written = self._config.get(key)
        if written is None:
            return []
        words = written if isinstance(written, list) else [written]
        if not words or not all(isinstance(word, str) and word for word in words):
            raise ToolError(Kind.VALIDATION, f"config.{key}: write a word, or a list of words")
        return [str(word) for word in words]

    def arguments(self, written: object) -> list[str]:
        """A list of words, each slot filled; a value stays a value, also where it begins with a dash."""
        words: list[str] = []
        for template in _list_of_words(written):
            word = as_text(self._fill(ARGUMENTS, template))
            if word.startswith("-") and _begins_with_slot(template) and END_OF_OPTIONS not in words:
                message = (
                    f"config.args: the value of {template} begins with '-' and would be taken for an option; give another, "
                    f"or let the author write it as --name={template}, or put {END_OF_OPTIONS} before it"
                )
                raise ToolError(Kind.VALIDATION, message)
            words.append(word)
        return words

    def options(self, written: object) -> list[str]:
        """A list of words that stand before a file; none of them is the caller's, or another file could run instead."""
        for template in _list_of_words(written):
            if _begins_with_slot(template):
                message = (
                    f"config.args: {template} would stand where the file to run stands; write it as --name={template}"
                )
                raise ToolError(Kind.VALIDATION, message)
        return self.arguments(written)

    def variables(self) -> dict[str, str]:
        """The variables of `env`."""
        filled = self._fill(VARIABLES, self._config.get(VARIABLES, {}))
        return check_variables(filled if isinstance(filled, dict) else {})

    def folder(self) -> str:
        """Where the author wants it to run, seen from the tool's own folder."""
        return as_text(self._fill(FOLDER, self._config.get(FOLDER, "")))

    def command_line(self) -> tuple[str, list[str]]:
        """The command line with a parameter of the shell for each slot, and the values of those parameters.

        So no value is ever read by the shell as code, whatever stands around its slot.
        """
        written = self._config.get(COMMAND)
        if not isinstance(written, str) or not written.strip():
            raise ToolError(Kind.VALIDATION, "config.command: with shell: true, write a command line")
        values: list[str] = []

        def as_parameter(value: object, before: str) -> str:
            if _is_inside_quotes(before):
                message = "config.command: write slots without quotes around them; each becomes one word by itself"
                raise ToolError(Kind.VALIDATION, message)
            values.append(as_text(value))
            return f'"${{{len(values)}}}"'

        # With the blank no slot stands alone, so that each goes through the function above.
        line = self._fill(COMMAND, f"{written} ", as_parameter)
        return str(line).rstrip(" "), values

    def unmentioned(self, *, more: tuple[str, ...] = ()) -> dict[str, object]:
        """The arguments that no slot takes."""
        keys = (ARGUMENTS, VARIABLES, FOLDER, *more)
        mentioned = compile_template({key: self._config.get(key) for key in keys}).names
        return {name: value for name, value in self._order.arguments.items() if name not in mentioned}

    def _fill(self, key: str, written: object, place: Place | None = None) -> object:
        template = compile_template(written)
        try:
            if place is None:
                return template.render(self._lookup, self._order.variable)
            return template.render(self._lookup, self._order.variable, place)
        except ToolError as error:
            if error.kind is not Kind.VALIDATION or error.message.startswith("config."):
                raise
            raise ToolError(error.kind, f"config.{key}: {error.message}", details=error.details) from None


def check_variables(variables: Mapping[str, object]) -> dict[str, str]:
    """The variables as text; refuses a name that no environment has."""
    for name in variables:
        if VARIABLE_NAME.fullmatch(name) is None:
            raise ToolError(
                Kind.VALIDATION, f"env: {name[:80]!r} is no name of a variable; use letters, digits and '_'"
            )
    return {name: as_text(value) for name, value in variables.items()}


def refuse_spliced_code(written: object) -> None:
    """Refuse a value in the middle of code for a shell, where it would be read as code too."""
    for option, template in pairwise(_list_of_words(written)):
        document = compile_template(template).document
        is_code = isinstance(option, str) and CODE_OPTION.fullmatch(option) is not None
        if is_code and isinstance(document, Text) and document.sole is None:
            message = "config.args: a value in code for a shell would be read as code; write config: {command: …, shell: true}"
            raise ToolError(Kind.VALIDATION, message)


def _list_of_words(written: object) -> list[object]:
    if written is None:
        return []
    if not isinstance(written, list) or any(isinstance(word, dict | list) for word in written):
        raise ToolError(Kind.VALIDATION, "config.args: write a list of words")
    return written


def _begins_with_slot(template: object) -> bool:
    document = compile_template(template).document
    return isinstance(document, Text) and not document.head


def _is_inside_quotes(before: str) -> bool:
    return any(found["open"] for found in _QUOTES.finditer(before))
