"""Looking into a process whose system call waits: its memory, and what it means by a path."""

from __future__ import annotations

import os

_PATH_BYTES = 4096
_MAX_LINKS = 40
_CURRENT_FOLDER = -100


class Sight:
    """What a process that waits means by its arguments; raises OSError or ValueError for what cannot be made out."""

    def __init__(self, process: int) -> None:
        self._home = f"/proc/{process}"

    def read(self, address: int, size: int) -> bytes:
        """So many bytes of its memory, or fewer where it ends."""
        memory = os.open(f"{self._home}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(memory, size, address)
        except OverflowError as problem:
            raise ValueError("the address lies outside of its memory") from problem
        finally:
            os.close(memory)

    def path(self, folder: int | None, address: int | None, *, follow: bool) -> str:
        """The path at the address, seen from the descriptor of a folder; an empty one means what the descriptor is.

        Links are followed as the process would, so that the answer is where it comes out.
        """
        text = "" if address is None else self._text(address)
        if text.startswith("/"):
            return self._resolve("/", text, follow=follow)
        base = self._folder(_CURRENT_FOLDER if folder is None else folder)
        return self._resolve(base, text, follow=follow) if text and base.startswith("/") else base

    def _text(self, address: int) -> str:
        text, end, _ = self.read(address, _PATH_BYTES).partition(b"\0")
        if not end:
            raise ValueError("the path has no end")
        return os.fsdecode(text)

    def _folder(self, descriptor: int) -> str:
        number = descriptor & 0xFFFFFFFF
        if number == _CURRENT_FOLDER & 0xFFFFFFFF:
            return _read_link(f"{self._home}/cwd")
        return _read_link(f"{self._home}/fd/{number}")

    def _resolve(self, base: str, path: str, *, follow: bool) -> str:
        """Walk down the path link by link. A link that leads to no path, such as one to a pipe, is the answer itself."""
        found, links = base, 0
        ahead = _parts(path)
        while ahead:
            part = ahead.pop()
            if part == "..":
                found = found.rpartition("/")[0] or "/"
                continue
            here = self._by_own_name(f"{found.rstrip('/')}/{part}")
            target = self._link(here) if ahead or follow else ""
            if not target:
                found = here
                continue
            links += 1
            if links > _MAX_LINKS:
                raise ValueError("the path has too many links")
            if target.startswith("/"):
                found = "/"
            elif here.startswith(self._home):
                return target
            ahead += _parts(target)
        return "/proc/self" + found.removeprefix(self._home) if _is_below(found, self._home) else found

    def _by_own_name(self, path: str) -> str:
        """Its own folder in /proc has a number here, another one in its world, and two words."""
        folder, _, name = path.rpartition("/")
        if folder == "/proc" and (name in {"self", "thread-self"} or (name.isdecimal() and name == self._own_number())):
            return self._home
        return path

    def _own_number(self) -> str:
        with open(f"{self._home}/status", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - see system
            for line in file:
                if line.startswith("NStgid:"):
                    return line.split()[-1]
        return ""

    def _link(self, path: str) -> str:
        """Where a link leads in the world of the process; empty for what is none."""
        try:
            return _read_link(path if _is_below(path, self._home) else f"{self._home}/root{path}")
        except OSError:
            return ""


def _parts(path: str) -> list[str]:
    """The parts of a path, the first one last."""
    return [part for part in reversed(path.split("/")) if part not in {"", "."}]


def _read_link(path: str) -> str:
    return os.readlink(path)  # noqa: PTH115 - see system


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
