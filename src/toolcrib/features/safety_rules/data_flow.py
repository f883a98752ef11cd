"""Ask a person before a call sends data out in a session that has private data."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from toolcrib.features.safety_rules.settings import is_path
from toolcrib.lib.hidden_text import strings_in
from toolcrib.model.result import ALLOW, confirm
from toolcrib.model.tool import Chained, Http, Script, Sql

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolcrib.core.resources import Resources
    from toolcrib.model.call import Call
    from toolcrib.model.result import Verdict
    from toolcrib.model.tool import Tool

NETWORK = "net."
READS_FILES = ("fs.", "shell.")
# How definitions name a secret or the login of OAuth; a bare `${NAME}` is a secret only if one is stored under that name.
_SECRET = re.compile(r"\$\{secret:(\w+)\}|'login': '(\w+)'|\$\{(\w+)")
_BETWEEN_PATHS = re.compile(r"[\s;&|<>()'\"=:,]+")


class DataFlow:
    """Needs confirmation for a call that may send data out once its session, or the call itself, has private data.

    Private are the results of a tool that `private` of the settings names, of a call that names a private path, and of a tool
    that holds a secret. A tool may send out its own private data, and so may every tool with the same secret: they come from
    there. A session goes by what tools declare, which the sandbox enforces for files of code.
    """

    name = "data_flow"

    def __init__(self, resources: Resources, private: tuple[str, ...], workspace: Path) -> None:
        self.where = resources.settings.where("safety_rules.data_flow")
        self._resources = resources
        self._words = resources.tool_words(word for word in private if not is_path(word))
        self._workspace = str(workspace)
        self._paths = {word: posixpath.normpath(workspace / word) for word in private if is_path(word)}

    def concerns(self, tool: Tool) -> bool:
        """Whether a call of the tool may send data out, or have private data."""
        return self._sends(tool) or any(self._credentials(tool)) or (bool(self._paths) and _reads_files(tool))

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Judge by the earlier calls of the session; a call without one stands alone."""
        if tool is None or not self._sends(tool):
            return ALLOW
        before = {} if call.session is None else dict(call.session.notes)
        for own in self._owned(tool) if before else ():
            before.pop(own, None)
        found = {**before, **dict.fromkeys(self._named_paths(tool, call), "this call")}
        if not found:
            return ALLOW
        return confirm(
            f"{tool.name} may send data out, and {min(found.values())} has private data of this session",
            rule=self.name,
            where=self.where,
        )

    def notes(self, tool: Tool, call: Call) -> set[str]:
        """The owners of the private data that the call may return."""
        return self._owned(tool) | self._named_paths(tool, call)

    def _sends(self, tool: Tool) -> bool:
        return isinstance(tool.run, Http) or any(capability.startswith(NETWORK) for capability in tool.requires)

    def _owned(self, tool: Tool) -> set[str]:
        """The tool itself if the operator named it, and the secrets that it holds."""
        certain, possible = self._credentials(tool)
        return certain | (possible & set(self._resources.data.secrets.names()) if possible else possible)

    def _credentials(self, tool: Tool) -> tuple[set[str], set[str]]:
        """What makes results of the tool private, and what does if a secret of that name is stored."""
        found = _SECRET.findall(self._definition(tool))
        certain = {explicit or login for explicit, login, _ in found} - {""}
        possible = {bare for *_, bare in found} - {""} | self._resources.granted_variables(tool)
        return certain | ({tool.address} if self._words.of(tool) else set()), possible

    def _definition(self, tool: Tool) -> str:
        """The text in which a tool that is no function of the host names its secrets."""
        if isinstance(tool.run, Script):
            valves = self._resources.settings.explicit("ecosystems").get("valves", {})
            return str(valves.get(tool.run.path.stem, ""))
        return str(tool.run.identity()) if isinstance(tool.run, Http | Sql | Chained) else ""

    def _named_paths(self, tool: Tool, call: Call) -> set[str]:
        """The private paths that the call names."""
        if not self._paths or not _reads_files(tool):
            return set()
        texts = [*strings_in(call.arguments), *([tool.run.database] if isinstance(tool.run, Sql) else ())]
        return {word for word, path in self._paths.items() if any(self._leads_into(path, text) for text in texts)}

    def _leads_into(self, path: str, text: str) -> bool:
        if path != self._workspace and posixpath.basename(path) not in text:
            return False
        return any(f"{each}/".startswith(f"{path}/") for each in self._places(text))

    def _places(self, text: str) -> Iterator[str]:
        for piece in (text, *_BETWEEN_PATHS.split(text)):
            yield posixpath.normpath(posixpath.join(self._workspace, piece))


def _reads_files(tool: Tool) -> bool:
    return isinstance(tool.run, Sql) or any(capability.startswith(READS_FILES) for capability in tool.requires)
