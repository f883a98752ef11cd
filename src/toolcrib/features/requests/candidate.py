"""Read a candidate, the package that a maker wrote, without running it; publish it atomically once it is proved."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolcrib.features.requests.built_package import (
    DESCRIPTION_FILE,
    GENERATED,
    VERSION,
    BuiltPackage,
    make_tool,
    write_description,
)
from toolcrib.features.requests.format import load_package, read_file, read_folder
from toolcrib.features.requests.queues import spell_time, utc_now
from toolcrib.infra.files import DISK, MARKS, OPEN_FOLDER
from toolcrib.infra.files.durable import UnsyncedError, explained
from toolcrib.lib.documents import MAX_DEFINITION_BYTES
from toolcrib.lib.names import slug_of
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Allowance, Made

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from toolcrib.infra.files import Disk
    from toolcrib.model.tool import Tool
    from toolcrib.model.toolrequest import ToolRequest

NOTHING_MORE = Allowance()
SHOWN_FILES = 5
FOLDER_MODE = 0o755
FILE_MODE = 0o644
# The errors of renaming a folder onto a folder that is not empty, or onto a file.
TAKEN = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR})

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ASIDE = re.compile(r"\.crib-[0-9a-f]{16}\.built")


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A package that is not published yet: its files by their paths from its folder, of which `entry` holds the function.

    `digest` is the same for the same bytes made for the same request.
    """

    name: str
    entry: str
    files: Mapping[str, bytes]
    digest: str


def read_candidate(path: Path, request: ToolRequest) -> Candidate:
    """Read what was made: a folder with `<name>.py` in it, or that one file. Raises ToolError with what is wrong, and the cure."""
    entry = request.entry_file
    files = {entry: read_file(path)} if _is_one_file(path) else read_folder(path)
    _refuse_taken_names(files, path)
    if entry not in files:
        raise _without_entry(files, path, request)
    package = _package_of(files, request, NOTHING_MORE)
    return Candidate(name=request.name, entry=entry, files=files, digest=package.digest)


def tool_of_candidate(
    candidate: Candidate, request: ToolRequest, *, folder: Path, allowance: Allowance = NOTHING_MORE
) -> Tool:
    """The tool that the candidate would be, with its files in the folder; raises ToolError if its code cannot be read."""
    return make_tool(_package_of(candidate.files, request, allowance), folder)


def _package_of(files: Mapping[str, bytes], request: ToolRequest, allowance: Allowance) -> BuiltPackage:
    """The package of these files for the request, with what the operator adds."""
    return BuiltPackage(
        name=request.name,
        function=request.function,
        description=request.description,
        parameters=request.parameters,
        output_schema=request.output_schema,
        files=files,
        requires=request.capabilities | allowance.capabilities,
        hosts=allowed_hosts(request, allowance),
        requirements=request.requirements,
        request=request.id,
    )


def allowed_hosts(request: ToolRequest, allowance: Allowance) -> tuple[str, ...] | None:
    """The hosts that it may reach; None if neither the request nor the operator limits them."""
    if request.hosts is None and not allowance.hosts:
        return None
    return tuple(dict.fromkeys((*(request.hosts or ()), *allowance.hosts)))


def publish(
    candidate: Candidate,
    request: ToolRequest,
    *,
    project_tools: Path,
    allowance: Allowance = NOTHING_MORE,
    now: Callable[[], datetime] = utc_now,
    disk: Disk = DISK,
) -> Made:
    """Put the candidate into the folder of tools, where the next call finds it; raises CONFLICT if something else is there.

    If the same package is there already, that is success. A failure leaves nothing that could be loaded as a tool.
    """
    moment = spell_time(now())
    times = {"createdAt": moment, "modifiedAt": moment}
    package = replace(_package_of(candidate.files, request, allowance), times=times)
    contents = {**package.contents, DESCRIPTION_FILE: _describe(package, project_tools)}
    with explained(str(project_tools)):
        project_tools.mkdir(parents=True, exist_ok=True)
        folder = os.open(project_tools, OPEN_FOLDER)
        try:
            _sweep(folder)
            _refuse_namesake(project_tools, package.name)
            if not _is_there(project_tools, package):
                _place(folder, project_tools, package, contents, disk)
        finally:
            os.close(folder)
    return _made(package, project_tools)


def find_published(request: ToolRequest, *, project_tools: Path, allowance: Allowance = NOTHING_MORE) -> Made | None:
    """What was published for this request by a Builder that could not report it; None if something else is there."""
    try:
        package = _load(project_tools / request.name)
    except ToolError:
        return None
    asked_for = replace(_package_of(package.files, request, allowance), importing=package.importing)
    is_it = package.request == request.id and package.digest == asked_for.digest
    return _made(package, project_tools) if is_it else None


def _is_one_file(path: Path) -> bool:
    try:
        return path.suffix == ".py" and not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _refuse_taken_names(files: Mapping[str, bytes], path: Path) -> None:
    """Refuse file names that mark the folder as another kind of tool."""
    for name in sorted(files.keys() & {*GENERATED, *MARKS}):
        is_ours = name in GENERATED
        cure = "is written when the tool is published; remove it" if is_ours else "marks other tool folders; rename it"
        raise ToolError(Kind.VALIDATION, f"{path.name}/{name}: {cure}")


def _without_entry(files: Mapping[str, bytes], path: Path, request: ToolRequest) -> ToolError:
    found = ", ".join(sorted(files)[:SHOWN_FILES]) or "nothing"
    message = f"{path.name}: there is no {request.entry_file}; write def {request.function}(…) there (found: {found})"
    return ToolError(Kind.NOT_FOUND, message)


def _describe(package: BuiltPackage, project_tools: Path) -> bytes:
    """The description of a package that can be loaded from there."""
    make_tool(package, project_tools / package.name)
    description = write_description(package, project_tools.name)
    if len(description) > MAX_DEFINITION_BYTES:
        message = f"{package.name}: what is asked for takes more than {MAX_DEFINITION_BYTES:,} bytes; ask for less"
        raise ToolError(Kind.LIMIT_EXCEEDED, message)
    return description


def _made(package: BuiltPackage, project_tools: Path) -> Made:
    bundle = project_tools.name
    return Made(
        name=package.name,
        version=VERSION,
        address=package.address(bundle),
        path=f"{bundle}/{package.name}",
        digest=package.digest,
    )


def _load(folder: Path) -> BuiltPackage:
    return load_package(folder.absolute(), read_file(folder / DESCRIPTION_FILE))


def _refuse_namesake(tools: Path, name: str) -> None:
    for stem in dict.fromkeys((name, slug_of(name))):
        if os.path.lexists(tools / f"{stem}.py"):
            message = f"{tools.name}/{stem}.py is a tool of that name already; move it away, or ask under another name"
            raise ToolError(Kind.CONFLICT, message)


def _is_there(tools: Path, package: BuiltPackage) -> bool:
    """Whether this package is published already; raises CONFLICT if something else is in its place."""
    folder = tools / package.name
    if not os.path.lexists(folder) or _is_empty(folder):
        return False
    try:
        digest = _load(folder).digest
    except ToolError as problem:
        if problem.retryable:
            raise
        digest = ""
    if digest == package.digest:
        return True
    message = (
        f"{tools.name}/{package.name} is there already and is something else; move it away, or ask under another name"
    )
    raise ToolError(Kind.CONFLICT, message)


def _is_empty(folder: Path) -> bool:
    return not folder.is_symlink() and folder.is_dir() and not any(folder.iterdir())


def _place(folder: int, tools: Path, package: BuiltPackage, contents: Mapping[str, bytes], disk: Disk) -> None:
    with _temporary_folder(folder, disk) as (name, descriptor):
        _write_all(descriptor, contents, disk)
        os.fchmod(descriptor, FOLDER_MODE)
        disk.sync(descriptor)
        try:
            disk.rename(name, package.name, folder=folder)
        except OSError as error:
            # Another process was faster; with the same package that is success.
            if error.errno in TAKEN and _is_there(tools, package):
                return
            raise
        try:
            disk.sync(folder)
        except OSError as error:
            raise UnsyncedError(error.errno, error.strerror) from None


@contextmanager
def _temporary_folder(folder: int, disk: Disk) -> Iterator[tuple[str, int]]:
    """A new folder that is not loaded as a tool, with its name; what still has the name afterwards is removed.

    It is locked for as long as its writer lives, which tells `_sweep` not to touch it.
    """
    name, descriptor = _make_temporary_folder(folder, disk)
    try:
        yield name, descriptor
    finally:
        os.close(descriptor)
        shutil.rmtree(name, ignore_errors=True, dir_fd=folder)


def _make_temporary_folder(folder: int, disk: Disk) -> tuple[str, int]:
    while True:
        name = f".crib-{os.urandom(8).hex()}.built"
        disk.make_folder(name, 0o700, folder=folder)
        try:
            descriptor = disk.open(name, OPEN_FOLDER | os.O_NOFOLLOW, folder=folder)
        except FileNotFoundError:
            continue  # a sweep removed it before it was locked
        except OSError:
            with suppress(OSError):
                os.rmdir(name, dir_fd=folder)
            raise
        if _is_ours(descriptor):
            return name, descriptor
        os.close(descriptor)


def _is_ours(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(descriptor).st_nlink > 0


def _sweep(folder: int) -> None:
    """Remove folders that killed writers left."""
    for name in filter(_ASIDE.fullmatch, os.listdir(folder)):
        with suppress(OSError):
            descriptor = os.open(name, OPEN_FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            try:
                if _is_ours(descriptor):
                    shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
            finally:
                os.close(descriptor)


def _write_all(root: int, contents: Mapping[str, bytes], disk: Disk) -> None:
    """Write the files and their folders durably."""
    folders: dict[str, int] = {"": root}
    try:
        for path, data in sorted(contents.items()):
            parent, _, name = path.rpartition("/")
            _write(_open_folders(folders, parent, disk), name, data, disk)
        for descriptor in folders.values():
            disk.sync(descriptor)
    finally:
        for path, descriptor in folders.items():
            if path:
                os.close(descriptor)


def _open_folders(folders: dict[str, int], path: str, disk: Disk) -> int:
    if path not in folders:
        parent, _, name = path.rpartition("/")
        above = _open_folders(folders, parent, disk)
        disk.make_folder(name, FOLDER_MODE, folder=above)
        folders[path] = disk.open(name, OPEN_FOLDER | os.O_NOFOLLOW, folder=above)
    return folders[path]


def _write(folder: int, name: str, data: bytes, disk: Disk) -> None:
    descriptor = disk.open(name, _NEW, FILE_MODE, folder=folder)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[disk.write(descriptor, rest) :]
        disk.sync(descriptor)
    finally:
        os.close(descriptor)
