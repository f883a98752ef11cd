"""Which crib is meant, that of a project or one behind a URL, and who calls."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.core.project_data import DATA_FOLDER
from toolcrib.core.resources import PROJECT_SCRIPTS, USER_SCRIPTS
from toolcrib.crib import Crib
from toolcrib.infra.settings import COMMAND_LINE, FILE_NAME, find_project
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.cli.console import WrongUseError, complain

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Self, TypeAlias

    from toolcrib.client.remote_crib import RemoteCrib
    from toolcrib.core.client_protocol import Suggesting
    from toolcrib.core.describe import Facts
    from toolcrib.core.expiring_documents import Piece
    from toolcrib.features.bundles.facade import Bundles
    from toolcrib.model.bundle import Bundle
    from toolcrib.model.call import Call
    from toolcrib.model.protocols import Journal
    from toolcrib.model.result import Result
    from toolcrib.model.tool import Tool
    from toolcrib.model.toolrequest import Event, Filed
    from toolcrib.model.verdict import Explanation

    OpenCrib: TypeAlias = "LocalCrib | RemoteCrib"

PAGE = 256


class LocalCrib:
    """A crib of this machine, as the commands use any."""

    url = ""

    def __init__(self, crib: Crib) -> None:
        self._crib = crib
        self.suggest = crib.suggest
        self.get_ready = crib.get_ready
        self.wish_from_search = crib.wish_from_search
        self.explain: Callable[[Call], Explanation] = crib.explain
        self.call_sync: Callable[[Call], Result] = crib.call_sync

    @property
    def problems(self) -> Sequence[ToolError]:
        """What could not be loaded, and why."""
        return self._crib.problems

    @property
    def bundles(self) -> Bundles:
        """The bundles and the tools in them."""
        return self._crib.bundles

    @property
    def requests(self) -> LocalRequests:
        """Requests for tools that do not exist yet."""
        return LocalRequests(self._crib)

    def list_tools(self, *, tags: Sequence[str] = (), executors: bool = False) -> list[Facts]:
        """The tools, or those with every one of the tags; or what executes them."""
        from toolcrib.core.describe import listed

        return [describe() for _, describe in listed(self._crib, tags=tags, executors=executors)]

    def show_tool(self, name: str) -> Facts | None:
        """All that is known of the tool that a name means."""
        from toolcrib.core.describe import all_facts_of

        entry = self._crib.find(name)
        return None if entry is None else all_facts_of(self._crib, entry)

    def meant_by(self, name: str) -> str:
        """The address of the tool that a name means; empty if it means none, or one whose document is broken."""
        try:
            entry = self._crib.find(name)
        except ToolError as problem:
            if problem.kind is Kind.DISABLED:
                return ""
            raise
        return "" if entry is None else entry.tool.address

    def parameters_of(self, name: str) -> Mapping[str, object]:
        """The schema of what a tool takes; empty if there is no such tool."""
        entry = self._crib.find(name)
        return {} if entry is None else entry.tool.parameters

    def search_tools(self, text: str, *, is_question: bool, everything: bool, limit: int) -> tuple[list[Facts], bool]:
        """The tools that fit what was typed, or a question; and whether there are more."""
        from toolcrib.core.describe import found_facts

        look = self.bundles.ask if is_question else self.bundles.search
        page = look(text, include_disabled=everything, page_size=limit)
        return [found_facts(found) for found in page.items], bool(page.next_token)

    def list_bundles(self) -> list[Bundle]:
        """Every bundle, also those that are switched off."""
        found: list[Bundle] = []
        token: str | None = ""
        while token is not None:
            page = self.bundles.list_bundles(include_disabled=True, page_size=PAGE, page_token=token)
            found += page.items
            token = page.next_token or None
        return found

    def stored_tool(self, bundle_id: str, slug: str, version: str) -> Mapping[str, object] | None:
        """The document of a version with what is known of it; None if there is none."""
        from toolcrib.features.bundles.definition import tool_to_wire

        try:
            return tool_to_wire(self.bundles.tool(bundle_id, slug, version))
        except ToolError as problem:
            if problem.kind is Kind.NOT_FOUND:
                return None
            raise

    def secret_names(self) -> Collection[str]:
        """What no argument of a tool may be called."""
        return self._crib.secrets.names()

    def switch_tool(self, name: str, *, on: bool) -> tuple[str, str] | None:
        """Switch a tool; its address, and why it still cannot be called. None if there is no such tool."""
        entry = self._crib.find(name)
        if entry is None:
            return None
        tool = entry.tool
        kept = self.bundles.switch_tool(self.bundles.bundle_id_of(tool), tool.slug, tool.version, on)
        return tool.address, kept.reason

    def read_result(self, handle: str, *, offset: int, length: int) -> Piece:
        """A piece of a value that was too large to be handed over at once."""
        return self._crib.read_result(handle, offset=offset, length=length)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._crib.__exit__(kind, problem, trace)


def open_any(project: str | None, url: str | None, *, grants: Iterable[str] = ()) -> OpenCrib:
    """The crib behind the URL if there is one, else that of the project."""
    if url is None:
        return LocalCrib(open_crib(project, grants=grants))
    if project is not None:
        raise WrongUseError("--url names a server, and --project a folder of this machine; leave one of them out")
    if frozenset(grants):
        raise WrongUseError("--grant: what tools may use is set on the server of --url, in grants; leave --grant out")
    from toolcrib.client.connection import TOKEN_VARIABLE
    from toolcrib.client.remote_crib import RemoteCrib

    try:
        return RemoteCrib(url, token=os.environ.get(TOKEN_VARIABLE))
    except ToolError as problem:
        if problem.kind is Kind.VALIDATION:
            raise WrongUseError(f"--url: {problem.message}") from problem
        raise


def open_keeping(project: str | None, url: str | None) -> OpenCrib:
    """The same, for what is to stay when the command has ended."""
    if url is not None:
        return open_any(project, url)
    from toolcrib.toolkit.cli.console import require_project

    crib = open_crib(project)
    require_project(crib)
    return LocalCrib(crib)


def open_crib(
    project: str | None,
    *,
    grants: Iterable[str] = (),
    tools: Iterable[Tool] = (),
    observe: bool = False,
    journal: Journal | None = None,
) -> Crib:
    """The crib of the named folder, else of the project around the current one, else one that keeps nothing on disk."""
    folder: Path | None = find_here() if project is None else Path(project)
    if project is None and folder is not None and not _is_project(folder):
        folder = None
    return Crib(
        folder,
        caller=name_caller(),
        tools=tools,
        given_by=COMMAND_LINE,
        observe=observe,
        journal=journal,
        grants=sorted(grants) or None,
        # Outside every project there are still the tools of the user.
        scripts=[USER_SCRIPTS] if folder is None else None,
    )


def _is_project(folder: Path) -> bool:
    return any((folder / name).exists() for name in (FILE_NAME, "tools", PROJECT_SCRIPTS, DATA_FOLDER))


def find_here() -> Path:
    """The project around the current folder, else that folder."""
    return find_project(Path.cwd(), lambda trusted, other: f"if you trust it, write: -C {trusted}, else: -C {other}")


def name_caller() -> str:
    """The user of the operating system; the environment, which anyone can set, is not asked."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


def mention_problems(crib: Suggesting) -> None:
    """Say that something could not be loaded, if so."""
    if problems := crib.problems:
        complain(f"not every tool could be loaded (problems: {len(problems)}); see: crib check")


# MERGED toolcrib.faces.cli.ordering

# Requests of a crib of this machine, as the commands use any.


class LocalRequests:
    """Waits where the crib itself would have a loop wait."""

    def __init__(self, crib: Crib) -> None:
        self._crib = crib
        self._requests = requests = crib.requests
        self.submit = requests.submit
        self.new = requests.new
        self.list = requests.list
        self.show = requests.show
        self.history = requests.history
        self.package = requests.package
        self.cancel = requests.cancel
        self.retry = requests.retry
        self.allow = requests.allow
        self.experiments = requests.experiments

    def follow(self, request_id: str, hear: Callable[[Event], None]) -> Filed:
        """Hear what happens to a request until it is over."""

        async def listen() -> None:
            async for event in self._requests.watch(request_id):
                hear(event)

        self._crib.run_sync(listen())
        return self._requests.show(request_id)

    def deliver(self, request_id: str, path: Path, hear: Callable[[str], None]) -> Filed:
        """Have proved and published what was made for a request."""
        return self._crib.run_sync(self._requests.deliver(request_id, path, hear))
