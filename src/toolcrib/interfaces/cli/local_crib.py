"""A local crib behind the protocol that it shares with a remote one."""

from __future__ import annotations

import getpass
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.features.bundles.definition import tool_to_wire
from toolcrib.interfaces.cli import LocalCalls
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.tool_facts import all_facts_of, found_facts, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from toolcrib.crib import Crib
    from toolcrib.features.approvals.approvals import Approvals
    from toolcrib.features.bundles.facade import Bundles
    from toolcrib.model.bundle import Bundle
    from toolcrib.model.result import Piece
    from toolcrib.model.toolrequest import Event, Filed
    from toolcrib.toolkit.tool_facts import Facts

PAGE = 256


class LocalCrib(LocalCalls):
    """A local crib behind the protocol of commands."""

    def __init__(self, crib: Crib) -> None:
        super().__init__(crib)
        self.request_from_search = crib.request_from_search

    @property
    def bundles(self) -> Bundles:
        """The bundles and the tools in them."""
        return self._crib.bundles

    @property
    def requests(self) -> LocalRequests:
        """Requests for tools that do not exist yet."""
        return LocalRequests(self._crib)

    @property
    def approvals(self) -> LocalApprovals:
        """Calls that wait for a person."""
        return LocalApprovals(self._crib.approvals)

    def list_tools(self, *, tags: Sequence[str] = (), executors: bool = False) -> list[Facts]:
        """The tools, or those with all of the tags; or the executors."""
        return [describe() for _, describe in listed(self._crib, tags=tags, executors=executors)]

    def show_tool(self, name: str) -> Facts | None:
        """All facts about the tool that a name means."""
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

    def search_tools(self, text: str, *, is_question: bool, everything: bool, limit: int) -> tuple[list[Facts], bool]:
        """The tools that match a text or a question, and whether there are more."""
        look = self.bundles.ask if is_question else self.bundles.search
        page = look(text, include_disabled=everything, page_size=limit)
        return [found_facts(found) for found in page.items], bool(page.next_token)

    def list_bundles(self) -> list[Bundle]:
        """Every bundle, including disabled ones."""
        found: list[Bundle] = []
        token: str | None = ""
        while token is not None:
            page = self.bundles.list_bundles(include_disabled=True, page_size=PAGE, page_token=token)
            found += page.items
            token = page.next_token or None
        return found

    def stored_tool(self, bundle_id: str, slug: str, version: str) -> Mapping[str, object] | None:
        """The document of a version with its state; None if there is none."""
        try:
            return tool_to_wire(self.bundles.tool(bundle_id, slug, version))
        except ToolError as problem:
            if problem.kind is Kind.NOT_FOUND:
                return None
            raise

    def secret_names(self) -> Collection[str]:
        """The names of secrets, which no argument of a tool may have."""
        return self._crib.secrets.names()

    def switch_tool(self, name: str, *, on: bool) -> tuple[str, str] | None:
        """Enable or disable a tool; its address, and why it still cannot be called. None if there is no such tool."""
        entry = self._crib.find(name)
        if entry is None:
            return None
        tool = entry.tool
        kept = self.bundles.switch_tool(self.bundles.bundle_id_of(tool), tool.slug, tool.version, on)
        return tool.address, kept.reason

    def read_result(self, handle: str, *, offset: int, length: int) -> Piece:
        """A piece of a stored result."""
        return self._crib.read_result(handle, offset=offset, length=length)


class LocalApprovals:
    """Approvals of a crib of this machine, decided by its user: no call has this user as its caller."""

    def __init__(self, approvals: Approvals) -> None:
        person = f"cli:{getpass.getuser()}"
        self.list = approvals.list
        self.show = approvals.show
        self.approve = partial(approvals.approve, by=person)
        self.refuse = partial(approvals.refuse, by=person)


class LocalRequests:
    """Requests of a local crib behind the protocol of commands: every method blocks until it is done."""

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
        """Report the events of a request until it is over."""

        async def listen() -> None:
            async for event in self._requests.watch(request_id):
                hear(event)

        self._crib.run_sync(listen())
        return self._requests.show(request_id)

    def deliver(self, request_id: str, path: Path, hear: Callable[[str], None]) -> Filed:
        """Prove and publish a candidate for a request."""
        return self._crib.run_sync(self._requests.deliver(request_id, path, hear))
