"""Crib: the tools of a project, with one method for everything that users do with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.core.call_state import CallsSettings, Policy
from toolcrib.core.catalog import Catalog, CatalogSettings
from toolcrib.core.execution import PendingCall, never_waits
from toolcrib.core.pipeline import Pipeline
from toolcrib.core.plugins import Plugins
from toolcrib.core.resources import ModulesSettings, Resources
from toolcrib.core.rules import RuleEngine
from toolcrib.core.sources import BUNDLES, SWITCHES, StoredSwitches, current_view
from toolcrib.infra.collector_pause import COLLECTOR_PAUSE
from toolcrib.infra.plain_code import PlainRunner, run_alone
from toolcrib.infra.settings import HOST_PROGRAM, Settings, load_settings
from toolcrib.lib.names import SYSTEM_BUNDLE
from toolcrib.model.call import Call, plain_call
from toolcrib.model.errors import SettingsError, ToolError
from toolcrib.model.tool import Entry, Script

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Generator, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType
    from typing import Any, Self, TypeVar, Unpack

    from toolcrib.client.remote_crib import RemoteCrib
    from toolcrib.core.grants import Grants
    from toolcrib.features.access.tokens import Tokens
    from toolcrib.features.activity.statistics import CostSum, Latency
    from toolcrib.features.agent_classes.classes import BaseTool
    from toolcrib.features.approvals.approvals import Approvals
    from toolcrib.features.audit.log import AuditLog
    from toolcrib.features.bundles.facade import Bundles
    from toolcrib.features.depots.transfer import Depots, Published, Pulled
    from toolcrib.features.ecosystems.valves import Valves
    from toolcrib.features.exports.descriptions import Descriptions
    from toolcrib.features.exports.facade import Exports
    from toolcrib.features.folders.source import Registries
    from toolcrib.features.model_texts.lint import TextLint
    from toolcrib.features.publications.definitions import Publications
    from toolcrib.features.requests.builder import Builder
    from toolcrib.features.requests.service import RequestService
    from toolcrib.features.requests.tracker import Requests
    from toolcrib.features.run_history.history import RunHistory
    from toolcrib.features.scripts.facade import Scripts
    from toolcrib.features.scripts.sink import Sink
    from toolcrib.features.sql_tools.inspection import Table
    from toolcrib.features.testing.examples import Examples
    from toolcrib.given_settings import GivenSettings
    from toolcrib.infra.call_counts import Metrics
    from toolcrib.infra.oauth.access_tokens import AccessTokens
    from toolcrib.infra.secrets.lookup import Secrets
    from toolcrib.infra.settings import Table as SettingsTable
    from toolcrib.infra.storage.expiring import Expiring, KeptResults
    from toolcrib.infra.usage_ledger import UsageLedger
    from toolcrib.lib.export_schemas import Export
    from toolcrib.lib.presentation import Prompt
    from toolcrib.model.events import StreamEvent
    from toolcrib.model.limits import Usage
    from toolcrib.model.protocols import Journal, Rule, Store
    from toolcrib.model.result import Explanation, Intent, Piece, Result
    from toolcrib.model.session import Send, Session
    from toolcrib.model.tool import Tool
    from toolcrib.toolkit.tool_facts import Facts

    T = TypeVar("T")


class Crib:
    """The tools of a project and of the host program: `async with Crib("path") as crib: result = await crib.call("name", city="Oslo")`.

    `project` is a folder with a `toolcrib.toml` or at least tools in it; without one the crib stores nothing on disk.
    `tools` are functions of the host program, agent-side tools, or Tools. `functions` are the functions that tools of bundles
    refer to, by key; each is called with a Context and the arguments.
    `tables` are settings tables by name, as mappings or typed (`sandbox=SandboxSettings(jobs=2)`), and `settings` further
    ones, which plugins declare; they override `toolcrib.toml`, and messages name `given_by` as their place.
    `store` and `journal` replace those of the project. `observe` traces file tools: `meta` of their results lists what they
    did and tried.
    """

    # Empty for a crib of this process; a RemoteCrib has the address of its server.
    url = ""

    def __init__(
        self,
        project: Path | str | None = None,
        *,
        tools: Iterable[Callable[..., object] | BaseTool | Tool] = (),
        functions: Mapping[str, Callable[..., object]] | None = None,
        rules: Iterable[Rule] = (),
        caller: str = "local",
        environment: Mapping[str, str] | None = None,
        store: Store | None = None,
        journal: Journal | None = None,
        given_by: str = HOST_PROGRAM,
        observe: bool = False,
        settings: Mapping[str, SettingsTable | Mapping[str, object]] | None = None,
        **tables: Unpack[GivenSettings],
    ) -> None:
        root = None if project is None else Path(project).resolve()
        if root is not None and not root.is_dir():
            raise SettingsError(f"{root} is not a folder; make one with: crib init {root}")
        variables = os.environ if environment is None else environment
        plugins = Plugins()
        plugins.start()
        self.settings: Settings = load_settings(
            root, variables, plugins.tables(), {**(settings or {}), **tables}, given_by
        )
        self.caller = caller
        self._plain = PlainRunner()
        self._catalog = Catalog(self.settings.table(CatalogSettings).disabled, self.settings.where("catalog.disabled"))
        self._resources = resources = Resources(
            self.settings,
            variables,
            self._catalog.find_below,
            self._catalog.means,
            observe=observe,
            plugins=plugins,
        )
        resources.lend(
            find=self.find,
            caller=caller,
            suggest=self._catalog.suggest,
            own_entries=self._catalog.own_entries,
            entries_near=self._catalog.entries_near,
            forget_tools=self._catalog.forget,
            open_trial_crib=_open_trial_crib,
        )
        own_rules = [*rules]
        # Rules of the host program may read everything of a call, its session too.
        self.has_own_rules = bool(own_rules or self.settings.table(ModulesSettings).rules)
        self._rules = RuleEngine(rules=[*resources.rules(), *own_rules])
        resources.functions |= functions or {}
        data = resources.data
        if store is not None:
            resources.lend(store=store)
        if journal is not None:
            data.journal = journal
        self._fill_catalog(tools)
        resources.grants.check(partial(self._catalog.entries, stored=False))
        if (trail := data.file("audit")) is not None and trail.is_dir():
            self.audit.start()
        self._pipeline = self._make_pipeline()

    @staticmethod
    def connect(url: str, *, token: str | None = None) -> RemoteCrib:
        """The crib of a server: `async with Crib.connect("http://127.0.0.1:8765") as crib: result = await crib.call("name")`.

        It has those methods of a local crib that work over HTTP. `token` is an access token of the server; a server on this
        machine needs none.
        """
        [part] = Plugins().parts("resources", "remote_crib")
        return part.make(None, url=url, token=token)  # type: ignore[no-any-return]  # registered with this type

    def call(self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object) -> PendingCall:
        """Call a tool: `await crib.call("name", city="Oslo")`. A Call may be given in place of name and arguments."""
        if arguments is None and type(name) is not Call:
            work = self._pipeline.call_simply(name, more, self.caller)  # type: ignore[arg-type]  # see `_begin`
        else:
            work = self._begin(name, arguments, more)
        pending = PendingCall()
        pending.work = work
        pending.__await__ = work.__await__  # type: ignore[method-assign]  # an attribute, see PendingCall
        return pending

    def perform(self, call: Call) -> Coroutine[object, object, Result]:
        """Make a call; for interfaces, which await the coroutine at once."""
        return self._pipeline.call(call)

    def stream(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> AsyncGenerator[StreamEvent, None]:
        """Call a tool and stream its events: `async for event in crib.stream("name", city="Oslo")`.

        Events are Progress, LogMessage and Chunk; the last event is the Result. Chunks are not validated against the output
        schema. Closing the generator cancels the call.
        """
        call = name if isinstance(name, Call) else plain_call(name, {**(arguments or {}), **more}, self.caller)
        return self._resources.make("call_stream", perform=self._pipeline.call, call=call)  # type: ignore[no-any-return]  # registered with this type

    def stream_sync(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> Generator[StreamEvent, None, None]:
        """Stream the events of a call from code that is not async; the tool runs on only while the next event is awaited."""
        return self._plain.iterate(self.stream(name, arguments, **more))

    async def call_unstored(self, tool: Tool, call: Call) -> Result:
        """Call a tool that is not in the catalog, through the whole pipeline."""
        return await self._pipeline.of_one(Entry(tool=tool)).call(call)

    def call_sync(self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object) -> Result:
        """Call a tool from code that is not async."""
        call = name if isinstance(name, Call) else plain_call(name, {}, self.caller)
        given: object = call.name
        entry = self._catalog.find(call.name, call.bundle, call.version) if isinstance(given, str) else None
        work = self._begin(name, arguments, more)
        streams = call.client is not None and call.client.takes_chunks
        is_alone = entry is not None and not streams and never_waits(entry.tool)
        return run_alone(work) if is_alone else self.run_sync(work)

    async def call_all(self, calls: Iterable[Call]) -> list[Result]:
        """Make several calls concurrently; one result for each, in their order."""
        import asyncio

        return await asyncio.gather(*(self._pipeline.call(call) for call in calls))

    def explain(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> Explanation:
        """The finding of every gate for this call, without making it."""
        if isinstance(name, Call):
            return self._pipeline.explain(name)
        return self._pipeline.explain(plain_call(name, {**(arguments or {}), **more}, self.caller))

    @property
    def grants(self) -> Grants:
        """The capabilities that tools are granted, by the lines of the settings table `[grants]`."""
        return self._resources.grants

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Every tool except executors."""
        return tuple(entry.tool for entry in self.entries)

    def list_tools(self, *, tags: Sequence[str] = (), executors: bool = False) -> list[Facts]:
        """The tools that have all of the tags, as JSON; or the executors instead."""
        return self._descriptions.list_all(self, tags, executors=executors)

    def show_tool(self, name: str) -> Facts | None:
        """All facts of the tool that a name means, as JSON."""
        return self._descriptions.show(self, name)

    def search_tools(
        self, text: str, *, is_question: bool = False, everything: bool = False, limit: int = 10
    ) -> tuple[list[Facts], bool]:
        """The tools that match a search text, then those that answer it as a question; and whether there are more."""
        return self._descriptions.search(text, is_question=is_question, everything=everything, limit=limit)

    def switch_tool(self, name: str, *, on: bool) -> tuple[str, str] | None:
        """Enable or disable a tool; returns its address and why it still cannot be called, or None if there is no such tool."""
        entry = self.find(name)
        if entry is None:
            return None
        tool = entry.tool
        kept = self.bundles.switch_tool(self.bundles.bundle_id_of(tool), tool.slug, tool.version, on)
        return tool.address, kept.reason

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every tool except executors, each with whether it is enabled."""
        return tuple(entry for entry in self._catalog.entries() if entry.tool.bundle != SYSTEM_BUNDLE)

    @property
    def unstored_entries(self) -> tuple[Entry, ...]:
        """The entries without the tools that are stored in bundles, of which there may be very many."""
        return tuple(entry for entry in self._catalog.entries(stored=False) if entry.tool.bundle != SYSTEM_BUNDLE)

    def entries_with(self, tags: Iterable[str]) -> tuple[Entry, ...]:
        """Every tool with all of the tags, ignoring case; stored tools are found by the index, so that no other is read."""
        wanted = {tag.casefold() for tag in tags}
        known = (entry for entry in self.unstored_entries if wanted <= {tag.casefold() for tag in entry.tool.tags})
        bundles: Bundles | None = self._resources.stored_bundles(BUNDLES)
        stored = () if bundles is None else bundles.list_stored(tags=wanted)[0]
        return (*known, *(entry for _, entry in stored))

    @property
    def tags(self) -> set[str]:
        """Every tag of a tool that the current caller may see."""
        bundles: Bundles | None = self._resources.stored_bundles(BUNDLES)
        if bundles is None or current_view() is not None:
            # The index does not know what a caller may see.
            return {tag for entry in self.entries for tag in entry.tool.tags}
        return {tag for entry in self.unstored_entries for tag in entry.tool.tags} | bundles.list_tags()

    @property
    def executors(self) -> tuple[Entry, ...]:
        """The platform's own primitives and runtimes, which execute other tools."""
        return tuple(entry for entry in self._catalog.entries(stored=False) if entry.tool.bundle == SYSTEM_BUNDLE)

    def find(self, name: str, session: Session | None = None) -> Entry | None:
        """The tool of that name, slug or address, as a session finds it if one is given."""
        return self._catalog.find(name, session=session)

    def require(self, name: str, session: Session | None = None) -> Entry:
        """The tool of that name, slug or address; raises ToolError, with a cure, if there is none."""
        return self._catalog.require(name, session)

    def same_name(self, tool: Tool) -> list[str]:
        """The addresses of other tools by this name, which only their address can call."""
        return self._catalog.same_name(tool)

    def suggest(self, name: str) -> str:
        """A hint at the similar name that may have been meant; empty if there is none."""
        return self._catalog.suggest(name)

    @property
    def problems(self) -> list[ToolError]:
        """What could not be loaded, and why, with paths relative to the project; empty for a caller that sees only some tools."""
        if current_view() is not None:
            return []
        found = [
            *self._resources.plugins.problems,
            *self._resources.data.problems(),
            *self._resources.get("readiness").problems(),
            *self._catalog.problems(),
            *self._grant_problems(),
            *(self._valves.problems(self.tools) if self.settings.explicit("ecosystems") else ()),
        ]
        root = self.settings.root
        return found if root is None else [_from_root(problem, f"{root}/") for problem in found]

    def _grant_problems(self) -> list[ToolError]:
        """The lines of the grants that mean no tool."""
        if not self.settings.explicit("grants"):
            return []
        tools = [entry.tool for entry in self._catalog.entries(stored=False)]
        return list(self.grants.problems(tools, self._catalog.has_named, self._catalog.stored_word))

    def check_settings(self) -> None:
        """Raise SettingsError now for settings that are otherwise only read by a call: hosts, addresses, secrets."""
        self._resources.check_settings()
        self.secrets.check()

    def check(self, tool: Tool) -> None:
        """Raise ToolError if the tool could never run."""
        self._pipeline.check(tool)

    def problems_of(self, tool: Tool) -> list[str]:
        """Why a call of the tool would fail here, as far as that can be found without calling it; connects to databases."""
        try:
            self.check(tool)
        except ToolError as problem:
            return [problem.message]
        checks = [part.load() for part in self._resources.plugins.parts("tool_checks")]
        return [problem for check in checks for problem in check(self._resources, tool)]

    def inspect_database(self, database: str) -> list[Table]:
        """The tables and columns of a database, under the guards that a tool over it would have."""
        return self.run_sync(self._resources.get("databases").tables(database))

    def warnings(self, tool: Tool) -> list[str]:
        """Warnings about the definition of a tool, which do not keep it from being called."""
        lint: TextLint = self._resources.get("text_lint")
        root = self.settings.root
        found = [*tool.warnings, *lint.of_tool(tool), *self._resources.get("scripts").warnings(tool)]
        return found if root is None else [line.replace(f"{root}/", "") for line in found]

    def missing(self, tool: Tool) -> list[str]:
        """What the tool still lacks here: grants, packages, programs, variables, secrets; each with its cure."""
        missing = self.grants.missing(tool)
        cure = self.grants.cure(tool, missing).operator
        needed = f"the grant of {' and '.join(sorted(missing))}; {cure}" if missing else ""
        more: list[str] = self._resources.get("readiness").missing(tool, self._pipeline.find_obstacle)
        return [*([needed] if needed else ()), *more]

    def obstacles(self, tool: Tool) -> list[str]:
        """What keeps the tool from running on this machine, each with its cure; starts no process.

        That is an executor, a program, packages, variables, secrets, a slot without a value, or a guarantee of the sandbox.
        """
        return self._resources.get("readiness").obstacles(tool, self._pipeline.find_obstacle)  # type: ignore[no-any-return]  # registered with this type

    async def probe_sandbox(self) -> None:
        """Probe what the sandbox guarantees here, so that `obstacles` knows it before the first call."""
        await self._resources.get("sandbox").learn()

    def ignored_files(self) -> list[str]:
        """Files in folders of tools that were not read as tools, each with the reason."""
        return self._scripts.ignored_files(self.tools, self.problems)

    def misleading_tools(self) -> list[str]:
        """Warnings about tools that imitate or mention other tools, so that a model may confuse them."""
        lint: TextLint = self._resources.get("text_lint")
        return lint.across(self.tools)

    def add(self, tool: Callable[..., object] | BaseTool | Tool) -> Tool:
        """Register a function of the host program, an agent-side tool, or a Tool."""
        canonical = self._resources.as_tool(tool)
        self._catalog.add(canonical)
        return canonical

    def add_rule(self, rule: Rule) -> None:
        """Let one more rule judge every call from now on."""
        self.has_own_rules = True
        self._rules.add_rule(rule)

    def session(
        self,
        *,
        mode: str = "text",
        state: Mapping[str, object] | None = None,
        send: Send | None = None,
        on_intent: Callable[[Intent], None] | None = None,
        max_calls: int | None = None,
        max_turn_calls: int | None = None,
        max_turn_retrievals: int | None = None,
        max_repeats: int | None = None,
    ) -> Session:
        """Open a session; `max_calls` limits its calls, by default the setting `calls.max_steps`.

        It stays pinned to the present version of the registry. `send` delivers messages of tools to the client, `on_intent` is
        called with each Intent of a tool; the other limits are those of a `Session`.
        """
        return self._resources.make(  # type: ignore[no-any-return]  # registered with this type
            "session",
            id=os.urandom(12).hex(),
            mode=mode,
            state=state,
            max_calls=self.settings.table(CallsSettings).max_steps if max_calls is None else max_calls,
            max_turn_calls=max_turn_calls,
            max_turn_retrievals=max_turn_retrievals,
            max_repeats=max_repeats,
            tools_version=self._catalog.tools_version,
            send=send,
            on_intent=on_intent,
        )

    @property
    def plugins(self) -> Plugins:
        """The registry of all parts."""
        return self._resources.plugins

    @property
    def registries(self) -> Registries:
        """The loaded registries of tool folders, and their build."""
        return self._resources.get("registries")  # type: ignore[no-any-return]  # registered with this type

    def documentation(self, name: str) -> str:
        """The documentation of a tool; empty if it has none, or if there is no such tool."""
        entry = self.find(name)
        return "" if entry is None else entry.tool.documentation

    def offered(
        self, mode: str | None = None, session: Session | None = None, names: Iterable[str] | None = None
    ) -> tuple[Tool, ...]:
        """The tools that a model is offered, in a mode or in any: enabled, granted, callable, and not shadowed by an equal name.

        In a session they come from the version of the registry that it is pinned to. Examples that are known to fail are left
        out. `names` restricts them to these names or addresses; raises NOT_FOUND for one that does not exist.
        """
        if names is not None:
            return self._exports.offered_among(names, lambda name: self.require(name, session), mode)
        made_of = (*self._catalog.contents(), session.tools_version if session else "")
        return self._exports.offered(
            lambda: (entry for entry in self._catalog.entries(session) if entry.tool.bundle != SYSTEM_BUNDLE),
            lambda name: self.find(name, session),
            mode,
            made_of,
        )

    @property
    def examples(self) -> Examples:
        """The record of which examples of tools are known to fail."""
        return self._resources.get("examples")  # type: ignore[no-any-return]  # registered with this type

    def prompt(self, mode: str, *, max_characters: int | None = None, max_tokens: int | None = None) -> Prompt:
        """The part of a system prompt that describes the tools of a mode, within a budget."""
        tools = self.offered(mode)
        return self._exports.prompt(tools, mode, max_characters=max_characters, max_tokens=max_tokens)

    def export(self, provider: str, *, mode: str | None = None, strict: bool = False) -> list[Export]:
        """The tools in the format of a provider, each with a report of what that format cannot express."""
        return self._exports.export(self.offered(mode), provider, strict=strict)

    def as_langchain(self, **options: Any) -> list[Any]:
        """The tools as LangChain tools; `options` are those of an Adapter: `tools`, `session`, `mode`, `caller`, `confirm`."""
        return self._exports.hand_over("langchain", self, options)

    def as_openai_agents(self, **options: Any) -> list[Any]:
        """The tools as tools of openai-agents; `options` as for `as_langchain`."""
        return self._exports.hand_over("openai_agents", self, options)

    def as_pydantic_ai(self, **options: Any) -> list[Any]:
        """The tools as tools of pydantic-ai; `options` as for `as_langchain`."""
        return self._exports.hand_over("pydantic_ai", self, options)

    def as_smolagents(self, **options: Any) -> list[Any]:
        """The tools as tools of smolagents; `options` as for `as_langchain`."""
        return self._exports.hand_over("smolagents", self, options)

    def read_result(self, handle: str, *, caller: str | None = None, offset: int = 0, length: int = 100_000) -> Piece:
        """A piece of a stored result that was too large to return at once."""
        kept: KeptResults = self._resources.get("kept_results")
        return kept.read(handle, self.caller if caller is None else caller, offset=offset, length=length)

    def get_ready(self, name: str) -> None:
        """Start the sandbox in advance if a call of the tool will need it."""
        entry = self._catalog.find(name)
        if entry is not None and entry.tool.kind == Script.kind:
            self._resources.get("sandbox").start()

    def sink(
        self, name: str, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> AbstractAsyncContextManager[Sink]:
        """Open a sink to stream events to: `async with crib.sink("file-sink", path="out.jsonl") as sink: await sink.write(event)`."""
        return self._scripts.open_sink(self._catalog.require(name), {**(arguments or {}), **more})

    def prepare(self, name: str, say: Callable[[str], None] | None = None) -> Path | None:
        """Install the packages that a Python file declares into its own environment; None if it declares none. `say` is called with progress."""
        return self._scripts.prepare(self._catalog.tool_in_file(name), say)

    def missing_imports(self, name: str) -> list[str]:
        """The modules that a Python file imports but does not declare, and that are not installed; each with the cure."""
        return self._scripts.missing_imports(self._catalog.tool_in_file(name))

    def publish(self, name: str, place: str, *, files: Iterable[str] = (), key: Path | None = None) -> Published:
        """Publish a tool of the project to the depot in a folder, with further files and signed by a key if given."""
        return self._depots.publish(self._catalog.tool_in_file(name), place, files=files, key=key)

    def publish_bundle(self, slug: str, version: str, place: str, *, key: Path | None = None) -> Published:
        """Publish a stored bundle with all its tools to the depot in a folder, under a version X.Y.Z of your choice."""
        return self._depots.publish_bundle(slug, version, place, key=key)

    async def pull(
        self, name: str, place: str, *, version: str | None = None, replace: bool = False, enable: bool = False
    ) -> Pulled:
        """Pull a tool, a tool folder or a bundle from a depot, a folder or a web address, into the project: all of it or nothing.

        It is disabled unless `enable`; a tool folder waits for its build.
        """
        return await self._depots.pull(name, place, version=version, replace=replace, enable=enable)

    @property
    def bundles(self) -> Bundles:
        """Bundles and the tools in them: put, switch, delete, list and search, of every owner."""
        return self._resources.get("bundles")  # type: ignore[no-any-return]  # registered with this type

    def find_tools(self, text: str, *, limit: int = 10) -> list[Tool]:
        """The tools that have their grants and match a text, best match first, then those that answer it as a question."""
        found: list[Tool] = []
        page = self.bundles.search(text, page_size=limit)
        if not page.items:
            self.request_from_search(text)
        while True:
            tools = (each.kept.tool for each in page.items)
            found += [tool for tool in tools if tool is not None and not self.grants.missing(tool)]
            if len(found) >= limit or not page.next_token:
                return found[:limit]
            page = self.bundles.search(text, page_size=limit, page_token=page.next_token)

    @property
    def requests(self) -> Requests:
        """Requests for tools that do not exist yet: file, list, watch, deliver, cancel."""
        return self._requests.requests

    def request_from_search(self, text: str) -> str:
        """File a request for a search without results and return its id; empty unless `requests.missing` enables this."""
        if current_view() is not None:
            return ""
        return self._requests.request_from_search(text)

    async def obtain(
        self,
        name: str,
        request: str | Path | Mapping[str, object] | None = None,
        *,
        experiment: str = "",
        seconds: float | None = None,
    ) -> Tool:
        """The tool of that name; if it does not exist, request it and wait until it is built.

        `request` is the YAML, a file of it, or its fields. Raises ToolError if the tool cannot be built, or not in time.
        """
        return await self._requests.obtainer.obtain(name, request, experiment=experiment, seconds=seconds)

    def builder(self, *, maker: str | None = None, say: Callable[[str], None] | None = None) -> Builder:
        """A Builder for this project: `await crib.builder().run(stop)`. `say` is called with each step."""
        return self._requests.builder(maker, say)

    @property
    def publications(self) -> Publications:
        """The resources and prompts that clients are offered beside tools."""
        return self._resources.get("publications")  # type: ignore[no-any-return]  # registered with this type

    @property
    def generation(self) -> object:
        """A value that changes whenever a tool or a switch changes; checks the files for changes."""
        return self._catalog.contents()

    def derive_key(self, purpose: str) -> bytes:
        """A key for signing texts of one purpose."""
        return self._resources.data.derive_key(purpose)

    def expiring(self, space: str) -> Expiring:
        """A part of the store whose documents expire, each at its own time."""
        return self._resources.make("expiring", prefix=space)  # type: ignore[no-any-return]  # registered with this type

    @property
    def secrets(self) -> Secrets:
        """The secrets that HTTP tools may use, by name."""
        return self._resources.data.secrets

    def secret_names(self) -> Collection[str]:
        """The names that no argument of a tool may have."""
        return self.secrets.names()

    @property
    def approvals(self) -> Approvals:
        """Calls that wait for a person: list, approve, refuse."""
        return self._resources.get("approvals")  # type: ignore[no-any-return]  # registered with this type

    @property
    def audit(self) -> AuditLog:
        """The audit trail: who decided and changed what."""
        return self._resources.get("audit")  # type: ignore[no-any-return]  # registered with this type

    @property
    def run_history(self) -> RunHistory:
        """What people ran on the web page."""
        return self._resources.get("run_history")  # type: ignore[no-any-return]  # registered with this type

    @property
    def tokens(self) -> Tokens:
        """The access tokens of the server of this project."""
        return self._resources.get("tokens")  # type: ignore[no-any-return]  # registered with this type

    @property
    def access_tokens(self) -> AccessTokens:
        """The OAuth access tokens that HTTP tools got from authorization servers."""
        return self._resources.get("access_tokens")  # type: ignore[no-any-return]  # registered with this type

    @property
    def metrics(self) -> Metrics:
        """Counts of calls by tool, each with the time of the last call."""
        return self._resources.data.metrics

    @property
    def journal(self) -> Journal:
        """The journal of calls and other events."""
        return self._resources.data.journal

    def latencies(self) -> list[Latency]:
        """How long the calls in the journal took, by tool."""
        return self._resources.make("latencies")  # type: ignore[no-any-return]  # registered with this type

    def costs(self) -> list[CostSum]:
        """What the calls in the journal cost, by tool and currency."""
        return self._resources.make("costs")  # type: ignore[no-any-return]  # registered with this type

    @property
    def usage_ledger(self) -> UsageLedger:
        """Where limits are counted, for all processes of the project together."""
        return self._resources.get("usage_ledger")  # type: ignore[no-any-return]  # registered with this type

    def usages(self) -> list[Usage]:
        """How much is used of the rate limits of tools and of the quotas of tokens, by all processes together."""
        tokens = {token.id: token for token in self.tokens.list() if token.quota is not None}
        quotas = {name: token.quota for name, token in tokens.items()}
        found: list[Usage] = self._resources.get("call_limits").usages(self.tools, quotas)
        return [
            replace(usage, name=tokens[usage.subject].name) if usage.subject in tokens else usage for usage in found
        ]

    async def sandbox_report(self) -> dict[str, Mapping[str, object]]:
        """What the sandbox guarantees here, probed if need be: for file tools, for those with network access, and for programs."""
        sandbox = self._resources.get("sandbox")
        await sandbox.learn()
        return {profile: sandbox.report(profile) for profile in ("plain", "network", "program")}

    async def close(self) -> None:
        """Close all resources and flush what is still in memory."""
        await self._resources.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
        await self._plain.close_from_loop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if "asyncio" in sys.modules:
            self.run_sync(self.close())
        else:
            run_alone(self.close())
        self._plain.close()

    def _begin(
        self, name: str | Call, arguments: Mapping[str, object] | None, more: dict[str, object]
    ) -> Coroutine[object, object, Result]:
        if type(name) is Call:
            return self.perform(name)
        if arguments is not None:
            # Arguments that are no mapping fail validation in the pipeline, and are not raised here.
            given: object = arguments
            more = {**arguments, **more} if isinstance(given, Mapping) else arguments  # type: ignore[assignment]  # see above
        return self._pipeline.call_simply(name, more, self.caller)  # type: ignore[arg-type]  # anything else is a name

    def _fill_catalog(self, tools: Iterable[object]) -> None:
        """Add the tools of the host program and all registered sources."""
        if callable(tools):
            raise SettingsError("tools is a list: write Crib(tools=[…])")
        resources, catalog = self._resources, self._catalog
        # Listed first: an iterable of the host may be slow, and the collector pauses only while the tools are converted.
        given = list(tools)
        with COLLECTOR_PAUSE:
            for tool in given:
                catalog.add(resources.as_tool(tool))
        for found in resources.get("host_modules").tools() if self.settings.table(ModulesSettings).tools else ():
            try:
                catalog.add(found)
            except ToolError as problem:
                resources.plugins.problems.append(problem)
        for source in resources.sources():
            catalog.add_source(source)
        catalog.use_switches(
            StoredSwitches(partial(resources.has_made, "bundles"), partial(resources.stored_bundles, SWITCHES))
        )

    def _make_pipeline(self) -> Pipeline:
        """The pipeline of this crib's calls, over its catalog, rules and resources."""
        settings, resources, data = self.settings, self._resources, self._resources.data
        calls = settings.table(CallsSettings)
        files_requests = settings.root is not None and "requests.missing" in settings.places
        return Pipeline(
            find=self._catalog.find,
            known=self._catalog.known,
            cure_for=self._catalog.cure_for,
            rules=self._rules,
            runners=resources.runners,
            journal=data.journal,
            confirmations=partial(resources.get, "confirmations"),
            limits=partial(resources.get, "call_limits"),
            approvals=lambda: self.approvals,
            mask=data.mask,
            kept=partial(resources.get, "kept_results"),
            policy=Policy(
                grants=resources.grants,
                timeout_seconds=calls.timeout_ms / 1000,
                result_bytes=calls.result_bytes,
            ),
            missing=self._request_missing if files_requests else None,
        )

    async def _request_missing(self, call: Call) -> str:
        """File a request for a called tool that does not exist; not for a limited caller, to whom it may only look missing."""
        return "" if current_view() is not None else await self._requests.request_for(call)

    @property
    def _requests(self) -> RequestService:
        return self._resources.get("requests")  # type: ignore[no-any-return]  # registered with this type

    @property
    def _scripts(self) -> Scripts:
        return self._resources.get("scripts")  # type: ignore[no-any-return]  # registered with this type

    @property
    def _valves(self) -> Valves:
        return self._resources.get("valves")  # type: ignore[no-any-return]  # registered with this type

    @property
    def _exports(self) -> Exports:
        return self._resources.get("exports")  # type: ignore[no-any-return]  # registered with this type

    @property
    def _descriptions(self) -> Descriptions:
        return self._resources.get("descriptions")  # type: ignore[no-any-return]  # registered with this type

    @property
    def _depots(self) -> Depots:
        return self._resources.get("depots")  # type: ignore[no-any-return]  # registered with this type

    def run_sync(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine that uses this crib from code that is not async, on the event loop of its other synchronous calls."""
        return self._plain.run(work)


def _open_trial_crib(lent: Mapping[str, object], /, **settings: Any) -> Crib:
    """Open a Crib for the trial of a tool, with resources lent by the Crib that tries it."""
    crib = Crib(**settings)
    crib._resources.lend(**lent)  # noqa: SLF001 - of the same class
    return crib


def _from_root(problem: ToolError, root: str) -> ToolError:
    """The problem with paths relative to the root of the project."""
    return problem.replace(reason=problem.reason.replace(root, "")) if root in problem.reason else problem
