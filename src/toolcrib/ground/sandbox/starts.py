"""Starting a program so that this start, and no later one, can be told apart by a filter of system calls."""

from __future__ import annotations

import os
import struct

from toolcrib.ground.sandbox.seccomp import Once

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

_READ_WRITE = 3
_PRIVATE_ANONYMOUS, _NOT_OVER_OTHERS = 0x22, 0x100000
_PAGE = 4096
_LARGEST_ADDRESS = 1 << 38  # every machine has that much
_TRIES = 20


class Start:
    """A program with its arguments and variables, ready to be started by this process.

    If it is to be the `only` start they are laid out at addresses that are drawn by lot, and a filter lets only these
    through. Once the program has started nothing of them is left that it could learn them from.
    """

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], *, only: bool) -> None:
        self._argv = list(argv)
        self._environment = environment
        self.once = _lay_out(argv, environment) if only else None

    def go(self) -> NoReturn:
        """Become the program; OSError if that is not possible."""
        if self.once is None:
            os.execve(self._argv[0], self._argv, self._environment)  # noqa: S606 - running programs is what a worker is for
        import ctypes

        library = ctypes.CDLL(None, use_errno=True)
        library.execve(*map(ctypes.c_void_p, self.once.addresses))
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), self._argv[0])


def _lay_out(argv: Sequence[str], environment: Mapping[str, str]) -> Once:
    variables = [f"{name}={value}" for name, value in environment.items()]
    return Once(
        _place(lambda _: _bytes_of(argv[0])),
        _place(lambda address: _table(argv, address)),
        _place(lambda address: _table(variables, address)),
    )


def _bytes_of(text: str) -> bytes:
    data = os.fsencode(text)
    if b"\0" in data:
        raise ValueError("embedded null byte")
    return data + b"\0"


def _table(texts: Sequence[str], address: int) -> bytes:
    """The addresses of the texts, a zero, and the texts."""
    parts = list(map(_bytes_of, texts))
    place = address + 8 * (len(parts) + 1)
    addresses = []
    for part in parts:
        addresses.append(place)
        place += len(part)
    return struct.pack(f"@{len(parts) + 1}Q", *addresses, 0) + b"".join(parts)


def _place(layout: Callable[[int], bytes]) -> int:
    """Put the bytes at an address drawn by lot, for which they are laid out."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    for _ in range(_TRIES):
        lot = int.from_bytes(os.urandom(8), "little")
        address = lot % _LARGEST_ADDRESS // 8 * 8
        data = layout(address)
        page = address // _PAGE * _PAGE
        flags = _PRIVATE_ANONYMOUS | _NOT_OVER_OTHERS
        size = ctypes.c_size_t(address - page + len(data))
        got = library.mmap(ctypes.c_void_p(page), size, _READ_WRITE, flags, -1, ctypes.c_long(0))
        if got == page:
            ctypes.memmove(address, data, len(data))
            return address
    raise OSError("there is no room in memory for the program's arguments")
