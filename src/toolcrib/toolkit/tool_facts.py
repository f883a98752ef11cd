"""Describe tools as JSON, without secrets, as every interface shows them; and decide which tools models are offered."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from toolcrib.core.call_state import CallsSettings
from toolcrib.core.sources import current_view
from toolcrib.lib.export_schemas.definitions import to_openai
from toolcrib.lib.names import function_name, slug_of
from toolcrib.lib.redaction import hide_secrets
from toolcrib.model.errors import Cure, Reader, cure_of
from toolcrib.model.tool import MODES, REPEAT_IDEMPOTENT, Chained, Handler, Http, Sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from toolcrib.core.grants import Grants
    from toolcrib.infra.settings import Settings
    from toolcrib.model.bundle import Found
    from toolcrib.model.tool import Entry, RetryPolicy, Tool


Facts = dict[str, Any]  # JSON, whose shape depends on the key

# Kinds that only other tools use.
NOT_OFFERED = {
    "library": "it is a library, which other tools use",
    "runtime": "it is a runtime, which runs other tools",
    "sink": "it is a sink, which other tools write to",
}
EXPERIMENTAL = "experimental"
BROKEN_FILE = "a broken file"
NOT_BUILT = "not built"
NOT_BUILT_CURE = Cure("run: crib build", "ask the operator to build it")
RETRIED_WHILE = ", as long as the error may pass; once in voice mode"


class UnbuiltFolder(Protocol):
    """A tool folder whose present files are not in the registry."""

    @property
    def folder(self) -> str:
        """Its path in the folder of tools."""

    @property
    def name(self) -> str:
        """The name of its tool."""

    @property
    def reason(self) -> str:
        """Why it is not built."""


class UnbuiltFolders(Protocol):
    """Lists the tool folders that are not built, each with the folder of tools that contains it."""

    def unbuilt(self) -> Iterable[tuple[Path, UnbuiltFolder]]:
        """All of them."""


class FailingExamples(Protocol):
    """Lists the examples that failed when they were last run, by the content hashes of their tools."""

    def failing(self) -> Mapping[str, list[dict[str, object]]]:
        """All of them."""


class DescribedCrib(Protocol):
    """A crib whose tools can be described."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    def grants(self) -> Grants:
        """The capabilities that tools are granted."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every tool except executors, each with whether it is enabled."""

    @property
    def unstored_entries(self) -> tuple[Entry, ...]:
        """The entries without the tools that are stored in bundles."""

    def entries_with(self, tags: Iterable[str]) -> tuple[Entry, ...]:
        """Every tool with all of the tags, ignoring case."""

    @property
    def executors(self) -> tuple[Entry, ...]:
        """The platform's own primitives and runtimes, which execute other tools."""

    @property
    def registries(self) -> UnbuiltFolders:
        """The registries of tool folders."""

    @property
    def examples(self) -> FailingExamples:
        """The record of which examples of tools are known to fail."""

    def find(self, name: str) -> Entry | None:
        """The tool of that name, slug or address."""

    def same_name(self, tool: Tool) -> list[str]:
        """The addresses of other tools by this name."""


def offered_tools(
    entries: Iterable[Entry], find: Callable[[str], Entry | None], mode: str | None, grants: Grants
) -> tuple[Tool, ...]:
    """The tools that models are offered: enabled, granted, callable by their bare name, and of the mode if one is given."""
    return tuple(entry.tool for entry in entries if _is_offered(entry, find, mode, grants))


def without_failing(tools: Iterable[Tool], failing: Mapping[str, list[dict[str, object]]]) -> tuple[Tool, ...]:
    """The tools without their failing examples, which are given by content hash."""
    if not failing:
        return tuple(tools)
    return tuple(_without(tool, failing.get(tool.content_hash, [])) if tool.examples else tool for tool in tools)


def _without(tool: Tool, failing: list[dict[str, object]]) -> Tool:
    if not failing:
        return tool
    return replace(tool, examples=tuple(example for example in tool.examples if example not in failing))


def _is_offered(entry: Entry, find: Callable[[str], Entry | None], mode: str | None, grants: Grants) -> bool:
    tool = entry.tool
    if not entry.enabled or tool.kind in NOT_OFFERED or grants.missing(tool):
        return False
    if mode is not None and tool.modes is not None and mode not in tool.modes:
        return False
    meant = find(tool.name)
    return meant is not None and meant.tool is tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Shadow:
    """The other tools with a tool's name; `by` is the one that the name calls instead, or BROKEN_FILE."""

    others: tuple[str, ...] = ()
    by: str = ""

    @property
    def over(self) -> tuple[str, ...]:
        """The tools that only their address can call."""
        return () if self.by else self.others


def shadow_of(crib: DescribedCrib, tool: Tool) -> Shadow:
    """Which tools share the tool's name, and which of them it calls."""
    others = tuple(crib.same_name(tool))
    first = crib.find(tool.name)
    if first is None:
        return Shadow(others=others, by=BROKEN_FILE)
    return Shadow(others=others, by="" if first.tool.address == tool.address else first.tool.address)


def _offer(entry: Entry, shadow: Shadow, grants: Grants, reader: Reader) -> Facts:
    """Whether and how models see the tool; without modes it is not offered, for the reason given."""
    tool, reason = entry.tool, why_not_offered(entry, shadow, grants, reader)
    modes = [] if reason else sorted(MODES if tool.modes is None else tool.modes)
    return {"offered": not reason, "as": function_name(tool.name), "modes": modes, "reason": reason}


def why_not_offered(entry: Entry, shadow: Shadow, grants: Grants, reader: Reader) -> str:
    """Why models are not offered the tool, with the cure; empty if they are."""
    tool = entry.tool
    if not entry.enabled:
        return f"it is disabled, {entry.reason}; {cure_of(entry.cure).words_for(reader)}"
    if shadow.by:
        return f"{shadow.by} comes first by this name; rename one of them"
    if tool.kind in NOT_OFFERED:
        return NOT_OFFERED[tool.kind]
    if missing := grants.missing(tool):
        cure = grants.cure(tool, missing).words_for(reader)
        return f"it requires {', '.join(sorted(missing))}, which is not granted; {cure}"
    return ""


def marks_of(tool: Tool) -> list[str]:
    """Short notes on the tool, such as `deprecated`, for lists."""
    is_marked = {
        "deprecated": tool.deprecated,
        EXPERIMENTAL: tool.metadata.get(EXPERIMENTAL) is True,
        "asks first": tool.requires_confirmation,
        **{f"{mode} only": tool.modes == frozenset({mode}) for mode in sorted(MODES)},
    }
    return [mark for mark, is_set in is_marked.items() if is_set]


def place_of(crib: DescribedCrib, tool: Tool) -> str:
    """The file and line that define a tool, relative to the project if possible."""
    if tool.origin is None:
        return ""
    return f"{_from_root(Path(tool.origin.place), crib.settings.root)}:{tool.origin.line}"


def _from_root(path: Path, root: Path | None) -> str:
    return str(path.relative_to(root) if root is not None and path.is_relative_to(root) else path)


def listed(
    crib: DescribedCrib,
    *,
    tags: Iterable[str] = (),
    executors: bool = False,
    stored: bool = True,
    reader: Reader = Reader.OPERATOR,
) -> list[tuple[str, Callable[[], Facts]]]:
    """The tools of a list, each with its address and a function that describes it.

    These are all tools, or those with all of the tags, followed by the folders that are not built; or the executors instead.
    Without `stored`, the tools of stored bundles are left out.
    """
    wanted = {tag.casefold() for tag in tags}
    if wanted and stored and not executors:
        entries = [*crib.entries_with(wanted)]
    else:
        entries = [
            entry
            for entry in (crib.executors if executors else crib.entries if stored else crib.unstored_entries)
            if wanted <= {tag.casefold() for tag in entry.tool.tags}
        ]
    unbuilt = [] if executors or wanted or current_view() is not None else unbuilt_facts(crib, reader)
    return [
        *((entry.tool.address, partial(facts_of, crib, entry, reader)) for entry in entries),
        *((facts["address"], partial(dict, facts)) for facts in unbuilt),
    ]


def unbuilt_facts(crib: DescribedCrib, reader: Reader = Reader.OPERATOR) -> list[Facts]:
    """The facts of tool folders that are not built, with cures that the reader can follow."""
    root = crib.settings.root
    return [
        {
            "name": folder.name,
            "address": f"{place.name}/{slug_of(folder.name)}",
            "bundle": place.name,
            "kind": Handler.kind,
            "built": False,
            "enabled": False,
            "reason": f"{NOT_BUILT}: {folder.reason}",
            "cure": NOT_BUILT_CURE.words_for(reader),
            "tags": [],
            "origin": _from_root(place / folder.folder, root),
        }
        for place, folder in crib.registries.unbuilt()
    ]


def found_facts(found: Found) -> Facts:
    """The facts of a tool in a search result."""
    kept, tool = found.kept, found.kept.tool
    return {
        "name": kept.slug if tool is None else tool.name,
        "address": f"{kept.bundle.slug}/{kept.slug}@{kept.version}" if tool is None else tool.address,
        "bundle": kept.bundle.slug,
        "version": kept.version,
        "foundBy": found.tier,
        "score": found.score,
        "enabled": kept.usable,
        "description": "" if tool is None else tool.description,
    }


def all_facts_of(crib: DescribedCrib, entry: Entry, reader: Reader = Reader.OPERATOR) -> Facts:
    """All facts of one tool, with its definition for models and its failing examples."""
    failing = crib.examples.failing().get(entry.tool.content_hash, [])
    return {**facts_of(crib, entry, reader), "failingExamples": failing, "definition": to_openai(entry.tool)}


def facts_of(crib: DescribedCrib, entry: Entry, reader: Reader = Reader.OPERATOR) -> Facts:
    """The facts of a tool, with cures that the reader can follow."""
    tool = entry.tool
    shadow = shadow_of(crib, tool)
    return {
        "name": tool.name,
        "address": tool.address,
        "displayName": tool.display_name,
        "description": tool.description,
        "bundle": tool.bundle,
        "version": tool.version,
        "category": tool.category,
        "tags": list(tool.tags),
        "enabled": entry.enabled,
        "reason": entry.reason,
        "cure": cure_of(entry.cure).words_for(reader),
        "marks": marks_of(tool),
        "models": _offer(entry, shadow, crib.grants, reader),
        "missingGrants": sorted(crib.grants.missing(tool)),
        "sameName": list(shadow.others),
        "shadows": list(shadow.over),
        "shadowedBy": shadow.by or None,
        "parameters": tool.parameters,
        "output": tool.output_schema,
        "requires": sorted(tool.requires),
        "behaviour": tool.behaviour,
        "sideEffects": tool.side_effects,
        "idempotent": tool.idempotent,
        "deprecated": tool.deprecated,
        "modes": None if tool.modes is None else sorted(tool.modes),
        "requiresConfirmation": tool.requires_confirmation,
        "limits": " ".join(", ".join(_limits(crib, tool)).split()),
        "timeoutMs": tool.limits.timeout_ms or crib.settings.table(CallsSettings).timeout_ms,
        "ownLimits": {
            "timeoutMs": tool.limits.timeout_ms,
            "latencyBudgetMs": tool.limits.latency_budget_ms,
            "callsPerMinute": tool.limits.calls_per_minute,
        },
        "retry": None if tool.limits.retry is None else asdict(tool.limits.retry),
        "tried": _tried(crib, tool),
        "cost": None if tool.cost is None else {**asdict(tool.cost), "estimate": tool.cost.estimate()},
        "kind": tool.kind,
        "sourceType": tool.source_type,
        **_facts_of_run(tool),
        "summary": tool.summary,
        "documentation": tool.documentation,
        "examples": list(tool.examples),
        "metadata": dict(tool.metadata),
        "origin": place_of(crib, tool),
        "contentHash": tool.content_hash,
        "warnings": list(tool.warnings),
    }


def _facts_of_run(tool: Tool) -> Mapping[str, object]:
    run = tool.run
    if isinstance(run, Handler):
        hosts = None if run.hosts is None else list(run.hosts)
        return {"handler": run.path, "language": run.language, "hosts": hosts, "registry": run.registry}
    if isinstance(run, Sql):
        hosts = None if run.hosts is None else list(run.hosts)
        return {"database": run.database, "statement": run.statement, "writes": run.write, "hosts": hosts}
    if not isinstance(run, Chained):
        return {}
    return {
        "toolType": run.tool_type,
        "executor": run.executor,
        "action": run.action or None,
        "hosts": None if run.hosts is None else list(run.hosts),
        "config": hide_secrets(dict(run.config)),
    }


def _limits(crib: DescribedCrib, tool: Tool) -> Iterator[str]:
    limits = tool.limits
    own = limits.timeout_ms
    usual = crib.settings.table(CallsSettings).timeout_ms
    yield f"{(own or usual) / 1000:g} s" + ("" if own else f" ({crib.settings.where('calls.timeout_ms')})")
    if limits.latency_budget_ms is not None:
        yield f"meant to take {limits.latency_budget_ms} ms"
    if limits.calls_per_minute is not None:
        yield f"{limits.calls_per_minute} calls a minute"
    if limits.retry is not None:
        yield f"{limits.retry.max_attempts} attempts{_waits(limits.retry)}"


def _tried(crib: DescribedCrib, tool: Tool) -> str:
    """How many attempts a call has, and why."""
    limits, why = tool.limits, ""
    if isinstance(tool.run, Http):
        most = 1 + crib.settings["http_tools"].max_retries
        counts = {min((call.retry or REPEAT_IDEMPOTENT).max_attempts, most) for call in tool.run.calls}
        return f"each request up to {max(counts)} times{RETRIED_WHILE}" if counts and max(counts) > 1 else "once"
    retry = limits.retry
    if retry is None and tool.idempotent:
        retry, why = REPEAT_IDEMPOTENT, ", because it is idempotent"
    if retry is None or retry.max_attempts == 1:
        return "once"
    return f"up to {retry.max_attempts} times{_waits(retry)}{why}{RETRIED_WHILE}"


def _waits(retry: RetryPolicy) -> str:
    """The delays between the first few attempts."""
    pauses = [f"{retry.delay_after(attempt):g} s" for attempt in range(1, min(retry.max_attempts, 5))]
    more = ", …" if retry.max_attempts > len(pauses) + 1 else ""
    return f" ({retry.backoff}: {', '.join(pauses)}{more})" if pauses else ""
