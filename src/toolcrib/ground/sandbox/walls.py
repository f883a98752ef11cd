"""From what a tool declares to the walls around it: the declared capabilities are the only holes."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.ground.sandbox.jobs import MEGABYTE, Walls, site_paths
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

READ = "fs.read"
WRITE = "fs.write"
PROGRAMS = "shell.execute"
NETWORK = "net."

# What a process of any language needs of the system to start at all: libraries, time zones, names, certificates.
LIBRARIES = (
    *("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/local/lib"),
    *(
        "/usr/share/zoneinfo",
        "/usr/share/locale",
        "/usr/share/i18n",
        "/usr/share/ca-certificates",
        "/usr/share/terminfo",
    ),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/timezone"),
    *("/etc/nsswitch.conf", "/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/gai.conf"),
    *("/etc/passwd", "/etc/group", "/etc/services", "/etc/protocols", "/etc/mime.types"),
    *("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem"),
    *("/etc/pki/ca-trust/extracted", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/locale.alias"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems", "/proc/sys/kernel/osrelease"),
    *("/sys/devices/system/cpu", "/proc/version", "/proc/uptime", "/proc/loadavg"),
)
# What one that may start programs finds besides.
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/opt", "/nix/store", "/etc/alternatives", "/etc/profile", "/etc/profile.d"),
    *("/etc/bash.bashrc", "/etc/inputrc", "/etc/gitconfig", "/etc/fonts", "/etc/perl", "/etc/java", "/etc/magic"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Premises:
    """What the operator lets jobs work in: the workspace, what in it is not theirs, and how much each may use.

    `unwritable` says why no job can be let write to the workspace, if that is so.
    """

    workspace: Path
    closed: tuple[Path, ...] = ()
    fixed: tuple[Path, ...] = ()
    unwritable: str = ""
    memory_bytes: int = 1024 * MEGABYTE
    processes: int = 64
    disk_bytes: int = 256 * MEGABYTE


def build_walls(
    requires: Iterable[str],
    premises: Premises,
    runtime: Iterable[Path] = (),
    *,
    listed: Iterable[Path] = (),
    observe: bool = False,
) -> Walls:
    """The walls of a job with these capabilities; `runtime` is what it sees besides, its own folder among it.

    Of folders that are `listed` it sees the names of what lies in them, and no file that is not in `runtime`.
    """
    return _build(frozenset(requires), premises, tuple(runtime), tuple(listed), observe)


@functools.lru_cache(maxsize=1024)
def _build(
    capabilities: frozenset[str],
    premises: Premises,
    runtime: tuple[Path, ...],
    listed: tuple[Path, ...],
    observe: bool,  # noqa: FBT001 - a cache keeps apart what is named and what is not
) -> Walls:
    programs = PROGRAMS in capabilities
    if WRITE in capabilities and premises.unwritable:
        raise ToolError(Kind.SANDBOX_UNAVAILABLE, f"no tool may write to the workspace: {premises.unwritable}")
    system = present((*LIBRARIES, *SYSTEM) if programs else LIBRARIES)
    workspace = (premises.workspace,) if READ in capabilities else ()
    read = tuple(dict.fromkeys((*system, *listed, *runtime, *workspace)))
    write = (premises.workspace,) if WRITE in capabilities else ()
    return Walls(
        read=read,
        # A folder that is the workspace itself, or that is part of what it runs on, is read as that.
        listed=tuple(place for place in listed if place not in {*runtime, *workspace}),
        write=write,
        # What the job could not reach anyway needs no exception, and each costs a moment at every start.
        closed=_within(premises.closed, (*read, *write)),
        fixed=_within(premises.fixed, write),
        programs=programs,
        network=has_network(capabilities),
        observe=observe,
        memory_bytes=premises.memory_bytes,
        processes=premises.processes,
        disk_bytes=premises.disk_bytes,
    )


@functools.cache
def present(paths: tuple[str, ...]) -> tuple[Path, ...]:
    """Those that this system has, without what lies below another: each costs a moment at every start."""
    found: list[Path] = []
    for path in sorted({Path(path).resolve() for path in paths if Path(path).exists()}):
        if not any(path.is_relative_to(outer) for outer in found):
            found.append(path)
    return tuple(found)


def _within(paths: tuple[Path, ...], roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """Those that lie in one of the roots, by their name or where they lead."""
    if not paths or not roots:
        return ()
    places = {place for root in roots for place in (root, root.resolve())}
    spellings = {path: {path, path.resolve()} for path in paths}
    return tuple(
        path
        for path, known in spellings.items()
        if any(place == spelling or place in spelling.parents for spelling in known for place in places)
    )


def has_network(capabilities: Iterable[str]) -> bool:
    """Whether one of the capabilities is for the network."""
    return any(capability.startswith(NETWORK) for capability in capabilities)


def python_runtime() -> tuple[Path, ...]:
    """What a Python file sees of the interpreter that runs Toolcrib."""
    return tuple(dict.fromkeys(Path(place) for place in (sys.base_prefix, sys.prefix, *site_paths())))
