"""Record the effects of a tool, and compare them with what it declares.

The sandbox observes system calls; the host itself sees which tools a job calls and which hosts it requests from the
proxy.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.sandbox import child
from toolcrib.infra.sandbox.child.observer import MORE
from toolcrib.infra.sandbox.jobs import NETWORK, PROGRAMS, PROXY_HOST, PROXY_PORT, READ, WRITE, Effect, python_runtime
from toolcrib.lib.http_syntax import parse_hosts
from toolcrib.model.tool import Chained, Handler, Script

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager
    from typing import Self, TypeVar

    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.egress.proxy import ProxyLog
    from toolcrib.infra.sandbox.attempt import Proxy
    from toolcrib.infra.sandbox.jobs import CompletedJob
    from toolcrib.model.call import Context
    from toolcrib.model.result import Result
    from toolcrib.model.tool import Tool

    Listener = TypeVar("Listener")
    Serve = Callable[[Listener], AbstractAsyncContextManager[ProxyLog]]


CALLS = "rye.execute"
REQUEST = "net.http"
OBSERVED = frozenset({READ, WRITE, PROGRAMS, NETWORK, CALLS})
CALL = "call"  # calling another tool, which the host records and no observer
STARTING = frozenset({"subprocess", "bash"})
COMMANDS = frozenset({"command", "shell"})
# What an interpreter reads about the machine when it starts.
MACHINE = tuple(map(Path, ("/sys/fs/cgroup", "/sys/devices/system", "/proc/version_signature", "/proc/sys/vm")))
NAME_SERVICE = frozenset({"unix:/var/run/nscd/socket", "unix:/run/nscd/socket"})
# Node reads package.json in every parent folder.
PACKAGE_FILE, PACKAGES = "package.json", "node_modules"
# The file that starts a Node handler is our own.
OURS = Path(child.__file__).parent.resolve()
ENVIRONMENT_FILE = "pyvenv.cfg"


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class Deed:
    """An effect that has to be declared: `capability` is the one that allows it, empty if none does."""

    act: str
    what: str
    denied: bool
    capability: str

    def to_json(self) -> dict[str, object]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The undeclared effects, the declared ones, and the declared capabilities that were never used."""

    undeclared: tuple[Deed, ...]
    declared: tuple[Deed, ...]
    unused: tuple[str, ...]

    @classmethod
    def of(cls, tool: Tool, deeds: Iterable[Deed], passed_on: Iterable[str] = ()) -> Self:
        """Compare the effects of all runs with what the tool declares.

        `passed_on` are the capabilities of tools that it called: it must have what they use.
        """
        done = sorted(set(deeds))
        opened = set(map(_group, tool.requires)) - {""}
        declared = tuple(deed for deed in done if _group(deed.capability) in opened)
        undeclared = tuple(deed for deed in done if deed not in declared)
        used = {_group(deed.capability) for deed in declared} | set(map(_group, passed_on)) | _inherent(tool)
        unused = sorted(name for name in tool.requires if _group(name) in OBSERVED - used)
        return cls(undeclared=undeclared, declared=declared, unused=tuple(unused))


class ExpectedEffects:
    """The effects that every run of a tool has, and that need no declaration."""

    def __init__(self, tool: Tool, workspace: Path) -> None:
        self.workspace = workspace.resolve()
        self._reads = READ in tool.requires
        self._folders = _folders_of(tool)
        self._runtime = tuple(root.resolve() for root in python_runtime())

    def covers(self, effect: Effect) -> bool:
        """Whether the effect is one of them."""
        if effect.act == "connect":
            return effect.what in NAME_SERVICE
        if effect.act != "read":
            return False
        path = Path(effect.what)
        if effect.denied:
            return _is_in(path, MACHINE) or self._is_package_file(path)
        # Without the capability only the runtime and the tool's own folder are readable.
        return not (self._reads and path.is_relative_to(self.workspace)) or self._is_own(path)

    def _is_package_file(self, path: Path) -> bool:
        searched = (*self._folders, OURS)
        return path.name == PACKAGE_FILE and any(folder.is_relative_to(path.parent) for folder in searched)

    def _is_own(self, path: Path) -> bool:
        if self._is_package_file(path) or _is_in(path, self._folders):
            return True
        if PACKAGES in path.parts or _is_in(path, self._runtime):
            return True
        return any((folder / ENVIRONMENT_FILE).is_file() for folder in path.parents)


class EffectRecorder:
    """Records what the host sees of one job."""

    def __init__(self) -> None:
        self._seen: dict[Effect, None] = {}

    def record_calls(self, context: Context) -> Context:
        """The context, with every call recorded."""

        async def call(name: str, arguments: Mapping[str, object] | None = None, /, **more: object) -> Result:
            self._seen[Effect(CALL, name)] = None
            return await context.call(name, arguments, **more)

        return replace(context, call=call)

    def record_visits(self, proxy: Serve[Listener]) -> Serve[Listener]:
        """The proxy, with its visits recorded."""

        @asynccontextmanager
        async def followed(listener: Listener) -> AsyncIterator[ProxyLog]:
            async with proxy(listener) as log:
                try:
                    yield log
                finally:
                    self._remember(log)

        return followed

    def add_to(self, ended: CompletedJob) -> CompletedJob:
        """The completed job, with the recorded effects added."""
        return replace(ended, effects=(*ended.effects, *self._seen))

    def _remember(self, log: ProxyLog) -> None:
        for visit in log.visits:
            if visit.host:
                self._seen[Effect("connect", f"{visit.host}:{visit.port}", denied=not visit.allowed)] = None
        if log.dropped:
            self._seen[Effect(MORE, "")] = None


def read_effects(written: object) -> list[Effect]:
    """Parse the effects in the meta of a result; malformed entries are ignored."""
    entries = [entry for entry in written if isinstance(entry, dict)] if isinstance(written, list) else []
    return [
        Effect(str(entry.get("act", "")), str(entry.get("what", "")), entry.get("denied") is True) for entry in entries
    ]


def find_deeds(tool: Tool, effects: Iterable[Effect], workspace: Path) -> list[Deed]:
    """The effects that have to be declared, each once: without runtime, own folder and scratch."""
    expected = ExpectedEffects(tool, workspace)
    deeds = {
        Deed(act=effect.act, what=effect.what, denied=effect.denied, capability=_capability(effect, expected.workspace))
        for effect in effects
        if not expected.covers(effect)
    }
    # A connection is reported by its destination, and by its socket only if there is none.
    ends = {deed for deed in deeds if deed.act != "connect" or not _is_a_beginning(deed.what)}
    return sorted(ends if any(deed.act == "connect" for deed in ends) else deeds)


def _folders_of(tool: Tool) -> tuple[Path, ...]:
    """The folders of the tool, with the shared ones of a handler."""
    run = tool.run
    if isinstance(run, Script):
        return (run.path.absolute().parent.resolve(),)
    if isinstance(run, Handler):
        return tuple(folder.resolve() for folder in run.folders)
    return (run.folder.absolute().resolve(),) if isinstance(run, Chained) else ()


def _is_in(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _inherent(tool: Tool) -> set[str]:
    """Capabilities that a tool uses by its kind: a command starts a program, which is not observed."""
    if not isinstance(tool.run, Chained):
        return set()
    is_command = tool.run.executor in STARTING or not tool.run.config.keys().isdisjoint(COMMANDS)
    return {PROGRAMS} if is_command else set()


def _group(capability: str) -> str:
    """Capabilities that allow the same: all network capabilities are equivalent."""
    if capability.startswith(NETWORK):
        return NETWORK
    return CALLS if capability.startswith(f"{CALLS}.") else capability


def _is_a_beginning(what: str) -> bool:
    return ":" not in what or what == f"{PROXY_HOST}:{PROXY_PORT}"


def _capability(effect: Effect, workspace: Path) -> str:
    if effect.act in {"read", "write"}:
        opens = READ if effect.act == "read" else WRITE
        return opens if Path(effect.what).is_relative_to(workspace) else ""
    if effect.act == "connect":
        return "" if effect.what.startswith("unix:") else REQUEST
    return {"start": PROGRAMS, CALL: CALLS}.get(effect.act, "")


def make_proxy(
    egress: Callable[[], Egress], hosts: tuple[str, ...] | None, deadline: float, recorder: EffectRecorder | None = None
) -> Proxy:
    """The proxy of a job; without hosts it allows every public host."""
    proxy = egress().proxy(None if hosts is None else parse_hosts(hosts), deadline=deadline)
    return proxy if recorder is None else recorder.record_visits(proxy)
