"""Deliver what a person made for a request: read the files that were sent, prove and publish them."""

from __future__ import annotations

import asyncio
import base64
import binascii
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.features.requests.built_package import write_files
from toolcrib.features.requests.claim import Lease, announce, publish, read_task
from toolcrib.infra.files.tool_folder import MAX_DEPTH, MAX_FILES
from toolcrib.lib.names import is_foreign
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from toolcrib.features.requests.claim import BuildTask, Proof, ProofSetup
    from toolcrib.model.protocols import MakerTask, Queue
    from toolcrib.model.toolrequest import Filed
    from toolcrib.toolkit.http.concurrency import Threads

    Say = Callable[[str], None]


PARTING_SECONDS = 2.0

MAX_NAME_BYTES = 255
SHOWN = 80
# The name of the folder in complaints and in the history.
FOLDER = "package"


class PersonMaker:
    """Says where the workspace is, and leaves the work to a person."""

    name = "person"

    async def make(self, task: MakerTask) -> bool:
        """False: the person who writes the tool delivers it."""
        number = task.request.id
        # A long line is cut, so the folder is named once.
        task.say(
            f"{task.folder / 'BRIEF.md'} says what to write; fill the folder {task.package.name} beside it "
            f"and hand it over with: crib request deliver {number}"
        )
        return False

    async def close(self) -> None:
        """Nothing was started."""


async def deliver(
    queue: Queue,
    setup: ProofSetup,
    filed: Filed,
    path: Path,
    say: Say,
    *,
    owner: str,
    lease_seconds: float,
    seconds: float,
) -> None:
    """Prove and publish the package at the path for a request; after an error the request waits as before.

    A package that the gate refuses raises VALIDATION, with the complaints in the details.
    """
    claim = await asyncio.to_thread(queue.claim, owner, lease_seconds, filed.id)
    if claim is None:
        now = await asyncio.to_thread(queue.get, filed.id)
        raise _why_not(filed if now is None else now)
    async with Lease(queue, claim) as lease:
        try:
            await _deliver(lease, setup, path, say, seconds)
        except BaseException as problem:
            text = problem.message if isinstance(problem, ToolError) else "the delivery was interrupted"
            leave = queue.hold if filed.held else queue.give_back
            await asyncio.shield(lease.end(partial(leave, claim, text), PARTING_SECONDS))
            raise


async def _deliver(lease: Lease, setup: ProofSetup, path: Path, say: Say, seconds: float) -> None:
    lease.note("delivered", path.name)
    task = await asyncio.to_thread(read_task, lease.claim, setup)
    if task.made is not None:
        made = await announce(lease, task.made)
    else:
        proof = await _prove(lease, setup, task, path, say, seconds)
        made = await publish(lease, setup, task, proof)
    if made is None:
        message = f"{lease.claim.id} is over, or another Builder has it, so it was not announced; look at it again"
        raise ToolError(Kind.CONFLICT, message)


async def _prove(lease: Lease, setup: ProofSetup, task: BuildTask, path: Path, say: Say, seconds: float) -> Proof:
    def tell(text: str) -> None:
        lease.say(text)
        say(text)

    try:
        async with asyncio.timeout(seconds):
            proof = await setup.prove(path, task.request, task.allowance, monotonic() + seconds, tell)
    except TimeoutError:
        message = f"proving it took longer than {seconds:g} seconds; see builder.seconds"
        raise ToolError(Kind.TIMEOUT, message) from None
    if not proof.passed:
        lease.note("refused", proof.reason)
        raise ToolError(Kind.VALIDATION, proof.reason, details={"complaints": list(proof.complaints)})
    return proof


def _why_not(filed: Filed) -> ToolError:
    if filed.status.is_final:
        return ToolError(Kind.CONFLICT, f"{filed.id} is {filed.status} already, so nothing can be delivered for it")
    return ToolError(Kind.CONFLICT, f"{filed.owner or 'a Builder'} builds {filed.id}; cancel it or wait for it")


@asynccontextmanager
async def written_package(files: Mapping[str, bytes], threads: Threads) -> AsyncIterator[Path]:
    """The files in a folder of their own, for as long as it is used."""
    with _explained():
        directory = TemporaryDirectory(prefix="toolcrib-delivery-", ignore_cleanup_errors=True)
    with directory as place:
        writing = asyncio.ensure_future(threads.write(_write, Path(place) / FOLDER, files))
        try:
            yield await asyncio.shield(writing)
        finally:
            # Wait for the writer, which would otherwise outlive the folder.
            await asyncio.wait({writing})


def _write(folder: Path, files: Mapping[str, bytes]) -> Path:
    with _explained():
        write_files(folder, files)
    return folder


@contextmanager
def _explained() -> Iterator[None]:
    """Report an error of the server's disk without its paths."""
    try:
        yield
    except OSError as problem:
        message = f"the server cannot store what was delivered: {problem.strerror}; look at its TMPDIR and its disk"
        raise ToolError(Kind.INTERNAL, message) from problem


def files_of(body: Mapping[str, object]) -> dict[str, bytes]:
    """The files of a body: those of `files` are texts, those of `binary` base64."""
    texts, binary = _texts(body, "files"), _texts(body, "binary")
    if len(texts) + len(binary) > MAX_FILES or not (texts or binary):
        raise ToolError(Kind.VALIDATION, f"body: files: send 1 to {MAX_FILES} files, each by its path")
    _check_paths((*texts, *binary))
    return {
        **{path: _encode(path, text) for path, text in texts.items()},
        **{path: _decode(path, text) for path, text in binary.items()},
    }


def _texts(body: Mapping[str, object], key: str) -> dict[str, str]:
    value = body.get(key, {})
    if isinstance(value, dict) and all(isinstance(text, str) for text in value.values()):
        return value
    raise ToolError(Kind.VALIDATION, f'body: {key}: must be an object of texts; write {{"name.py": "…"}}')


def _encode(path: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        message = f"body: files: {path!r:.{SHOWN}} contains a lone surrogate; send it as base64 in binary"
        raise ToolError(Kind.VALIDATION, message) from None


def _decode(path: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ToolError(
            Kind.VALIDATION, f"body: binary: {path!r:.{SHOWN}} is not base64; encode the file again"
        ) from None


def _check_paths(paths: tuple[str, ...]) -> None:
    """Refuse paths that lead out of the folder, are not published, or mean the same file twice."""
    taken: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        _check_path(path)
        # A case-insensitive disk would keep one of two.
        key = path.casefold()
        if key in taken:
            raise ToolError(Kind.VALIDATION, f"body: {path!r:.{SHOWN}} is sent twice; send it once, by one name")
        taken.add(key)
        words = key.split("/")
        folders.update("/".join(words[:end]) for end in range(1, len(words)))
    if both := taken & folders:
        raise ToolError(Kind.VALIDATION, f"body: {min(both)!r:.{SHOWN}} is a file and a folder; rename one of them")


def _check_path(path: str) -> None:
    parts = path.split("/")
    if "" in parts or "\\" in path or not path.isprintable() or len(parts) > MAX_DEPTH:
        message = f"body: {path!r:.{SHOWN}} is not a path within the package; write name.py or folder/name.py"
        raise ToolError(Kind.VALIDATION, message)
    for name in parts:
        if is_foreign(name) or len(name.encode()) > MAX_NAME_BYTES:
            message = (
                f"body: {path!r:.{SHOWN}}: {name!r:.{SHOWN}} cannot be part of a package; leave it out, or rename it"
            )
            raise ToolError(Kind.VALIDATION, message)
