"""Write reproducible ZIP archives, and read untrusted ones, in memory.

The central directory is parsed here, not by `zipfile`, which accepts overlapping entries, cuts names at a NUL and drops `..`.
An archive is read only if its entries fill it from the first byte to the directory without a gap, so that every program sees
the same files in it.
"""

from __future__ import annotations

import stat
import struct
import unicodedata
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.lib.hidden_text import find_hidden
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_NAME_BYTES = 255
MAX_DEPTH = 8

_END = struct.Struct("<4s4H2LH")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_EXTRA = struct.Struct("<2H")
END_MARK, CENTRAL_MARK, LOCAL_MARK = b"PK\5\6", b"PK\1\2", b"PK\3\4"
# Values that refer to a ZIP64 record.
SHORT_ESCAPE, LONG_ESCAPE = 0xFFFF, 0xFFFFFFFF
# How far from the end other programs look for the end record.
END_SEARCH = _END.size + SHORT_ESCAPE

STORED, DEFLATED = 0, 8
UTF8 = 0x800
# UTF-8 names and the compression level; any other flag means encryption, patches or sizes that follow the data.
HARMLESS_FLAGS = UTF8 | 0x6
VERSION = 20
UNIX = 3
DOS_VOLUME, DOS_FOLDER = 0x08, 0x10
# Extra fields that override the entry itself: ZIP64 sizes, another name, encryption.
OVERRIDING_FIELDS = frozenset({0x0001, 0x7075, 0x6375, 0x9901, 0x0017})
# 1 January 1980, the first day that the format can express.
FIRST_DAY = 0x21
PLAIN_FILE = (stat.S_IFREG | 0o644) << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveLimits:
    """Limits of an archive: number of entries, bytes of each entry and of all, and their compression ratio."""

    entries: int = 2_000
    file_bytes: int = 10_000_000
    total_bytes: int = 64_000_000
    ratio: int = 100


LIMITS = ArchiveLimits()


class _Entry(NamedTuple):
    """One entry of the directory."""

    name: str
    raw_name: bytes
    flags: int
    method: int
    checksum: int
    packed: int
    size: int
    offset: int


def write_archive(files: Mapping[str, bytes], limits: ArchiveLimits = LIMITS) -> bytes:
    """The archive of these files, sorted by name.

    They are stored uncompressed: the output of deflate differs between versions of its library.
    """
    if len(files) > limits.entries:
        raise _too_much(f"{len(files)} files", limits.entries, "files")
    _refuse_clashes(list(files))
    body, directory = bytearray(), bytearray()
    for name in sorted(files):
        data, raw_name = files[name], _checked_name(name)
        if len(data) > limits.file_bytes:
            raise _too_much(f"{name} has {len(data)} bytes", limits.file_bytes, "bytes in a file")
        if len(body) + len(data) > limits.total_bytes:
            raise _too_much("its files", limits.total_bytes, "bytes together")
        flags = 0 if raw_name.isascii() else UTF8
        common = (VERSION, flags, STORED, 0, FIRST_DAY, zlib.crc32(data), len(data), len(data), len(raw_name), 0)
        offset = len(body)
        body += _LOCAL.pack(LOCAL_MARK, *common) + raw_name + data
        directory += _CENTRAL.pack(CENTRAL_MARK, UNIX << 8 | VERSION, *common, 0, 0, 0, PLAIN_FILE, offset) + raw_name
    end = _END.pack(END_MARK, 0, 0, len(files), len(files), len(directory), len(body), 0)
    data = bytes(body + directory + end)
    _refuse_second_end(data)
    return data


def read_archive(data: bytes, limits: ArchiveLimits = LIMITS) -> dict[str, bytes]:
    """The files of an archive by name; raises ToolError for a refused one, before anything is unpacked."""
    entries = list(_read_directory(data, limits))
    _refuse_clashes([entry.name for entry in entries])
    begins = _locate(data, entries)
    return {entry.name: _unpack(data, entry, begin) for entry, begin in zip(entries, begins, strict=True)}


def _read_directory(data: bytes, limits: ArchiveLimits) -> Iterator[_Entry]:
    """The entries of the directory, each within the limits."""
    end = len(data) - _END.size
    if end < 0 or not data.startswith(END_MARK, end):
        raise _refusal("it does not end as a ZIP archive does; send it as it was exported, with nothing after it")
    _, disk, first_disk, here, count, size, start, comment = _END.unpack_from(data, end)
    if disk or first_disk or here != count or comment:
        raise _refusal("its end record has a comment or names several parts; write it as one file")
    _refuse_second_end(data)
    if SHORT_ESCAPE in (here, count) or LONG_ESCAPE in (size, start):
        raise _refusal("it is a ZIP64 archive; write a plain one")
    if count > limits.entries:
        raise _too_much(f"{count} entries", limits.entries, "entries")
    if start + size != end:
        raise _refusal("its directory is not where its end record says")
    total = 0
    place = start
    for _ in range(count):
        entry, place = _read_entry(data, place, end, limits)
        total += entry.size
        if total > limits.total_bytes:
            raise _too_much("its entries", limits.total_bytes, "bytes together")
        yield entry
    if place != end:
        raise _refusal("its directory holds more than its end record says")


def _refuse_second_end(data: bytes) -> None:
    """Refuse bytes that another program could take for the end record."""
    end = len(data) - _END.size
    if data.find(END_MARK, max(0, end - END_SEARCH), end) >= 0:
        raise _refusal("it has a second end record, and programs would disagree about its content")


def _read_entry(data: bytes, place: int, end: int, limits: ArchiveLimits) -> tuple[_Entry, int]:
    """One entry of the directory, and where the next begins."""
    if place + _CENTRAL.size > end or not data.startswith(CENTRAL_MARK, place):
        raise _refusal("its directory holds less than its end record says")
    _, made_by, _, flags, method, _, _, checksum, packed, size, *rest = _CENTRAL.unpack_from(data, place)
    name_length, extra_length, comment, disk, _, attributes, offset = rest
    place += _CENTRAL.size
    raw_name = data[place : place + name_length]
    extra = data[place + name_length : place + name_length + extra_length]
    place += name_length + extra_length
    if place > end or comment or disk:
        raise _refusal("an entry of its directory has a comment, is cut off, or lies in another part")
    name = _read_name(raw_name, flags)
    _check_flags(name, flags, method)
    _check_extra(name, extra)
    _check_kind(name, made_by >> 8, attributes)
    if LONG_ESCAPE in (packed, size, offset):
        raise _refusal(f"{name} has sizes of ZIP64; write a plain archive")
    if size > limits.file_bytes:
        raise _too_much(f"{name} has {size} bytes", limits.file_bytes, "bytes in a file")
    if method == STORED and packed != size:
        raise _refusal(f"{name} is stored and has two sizes")
    if size > limits.ratio * packed:
        raise _too_much(f"{name} is compressed {size}:{packed}", limits.ratio, "times its compressed size")
    return _Entry(name, raw_name, flags, method, checksum, packed, size, offset), place


def _read_name(raw_name: bytes, flags: int) -> str:
    try:
        name = raw_name.decode("utf-8" if flags & UTF8 else "ascii")
    except UnicodeDecodeError:
        raise _refusal(f"the name {raw_name[:80]!r} is not UTF-8, or is not marked as such") from None
    _checked_name(name)
    return name


def _checked_name(name: str) -> bytes:
    """The bytes of a name that means the same file on every system."""
    shown = ascii(name[:80])
    parts = name.split("/")
    if not name or len(raw := name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES or len(parts) > MAX_DEPTH:
        raise _refusal(f"the name {shown} is empty, too long or too deep")
    if "\\" in name or ":" in name or find_hidden(name) or not name.isprintable():
        raise _refusal(f"the name {shown} holds a backslash, a colon, or a character that cannot be seen")
    if any(part in ("", ".", "..") or part.endswith((".", " ")) or part.startswith(" ") for part in parts):
        raise _refusal(f"the name {shown} is absolute, is a folder, or has a part such as '..'; write a relative path")
    if unicodedata.normalize("NFC", name) != name:
        raise _refusal(f"the name {shown} is not in Unicode's normal form NFC")
    return raw


def _refuse_clashes(names: list[str]) -> None:
    """Refuse names that are the same file on some system, and a file that is also a folder."""
    seen: dict[str, str] = {}
    for name in names:
        if other := seen.get(_fold(name)):
            raise _refusal(f"{other} and {name} are the same file where case does not count")
        seen[_fold(name)] = name
    for name in names:
        parts = name.split("/")
        for length in range(1, len(parts)):
            if other := seen.get(_fold("/".join(parts[:length]))):
                raise _refusal(f"{other} is a file, and a folder of {name}")


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name.casefold())


def _check_flags(name: str, flags: int, method: int) -> None:
    if flags & ~HARMLESS_FLAGS:
        raise _refusal(f"{name} is encrypted, or its sizes follow its data; write it plainly")
    if method not in (STORED, DEFLATED):
        raise _refusal(f"{name} is compressed by method {method}; store or deflate it")


def _check_extra(name: str, extra: bytes) -> None:
    place = 0
    while place < len(extra):
        if place + _EXTRA.size > len(extra):
            raise _refusal(f"{name} has an extra field that is cut off")
        kind, length = _EXTRA.unpack_from(extra, place)
        place += _EXTRA.size + length
        if kind in OVERRIDING_FIELDS or place > len(extra):
            raise _refusal(f"{name} has an extra field (0x{kind:04x}) that says something else than the entry")


def _check_kind(name: str, system: int, attributes: int) -> None:
    mode = attributes >> 16 if system == UNIX else 0
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG) or attributes & (DOS_VOLUME | DOS_FOLDER):
        raise _refusal(f"{name} is not a regular file; leave out links, folders and devices")


def _locate(data: bytes, entries: list[_Entry]) -> list[int]:
    """Where the data of each entry begins; the entries must fill the archive up to its directory."""
    (start,) = struct.unpack_from("<L", data, len(data) - 6)
    begins: dict[int, int] = {}
    place = 0
    for entry in sorted(entries, key=lambda entry: entry.offset):
        if entry.offset != place:
            raise _refusal(f"{entry.name} overlaps another entry, or bytes that belong to no entry stand before it")
        begins[entry.offset] = begin = _check_local(data, entry, start)
        place = begin + entry.packed
    if place != start:
        raise _refusal("its entries overlap its directory, or bytes that belong to no entry stand before it")
    return [begins[entry.offset] for entry in entries]


def _check_local(data: bytes, entry: _Entry, end: int) -> int:
    """Where the data of an entry begins; refuses a local header that differs from the directory."""
    place = entry.offset
    if place + _LOCAL.size > end or not data.startswith(LOCAL_MARK, place):
        raise _refusal(f"{entry.name} is not where the directory says")
    _, _, flags, method, _, _, checksum, packed, size, name_length, extra_length = _LOCAL.unpack_from(data, place)
    place += _LOCAL.size
    said = (flags, method, checksum, packed, size, data[place : place + name_length])
    if said != (entry.flags, entry.method, entry.checksum, entry.packed, entry.size, entry.raw_name):
        raise _refusal(f"{entry.name} is described differently by its header and by the directory")
    place += name_length
    _check_extra(entry.name, data[place : place + extra_length])
    begin = int(place + extra_length)
    if begin + entry.packed > end:
        raise _refusal(f"{entry.name} is cut off")
    return begin


def _unpack(data: bytes, entry: _Entry, begin: int) -> bytes:
    """The bytes of an entry; never more than it declares."""
    content = data[begin : begin + entry.packed]
    if entry.method == DEFLATED:
        unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            content = unpacking.decompress(content, entry.size + 1)
        except zlib.error:
            raise _refusal(f"{entry.name} cannot be unpacked") from None
        if not unpacking.eof or unpacking.unused_data or unpacking.unconsumed_tail:
            raise _refusal(f"{entry.name} is longer or shorter than it declares")
    if len(content) != entry.size or zlib.crc32(content) != entry.checksum:
        raise _refusal(f"{entry.name} does not have the size and the checksum that it declares")
    return content


def _refusal(reason: str) -> ToolError:
    return ToolError(Kind.VALIDATION, f"the archive was refused: {reason}")


def _too_much(what: str, limit: int, unit: str) -> ToolError:
    message = f"the archive was refused: {what}; at most {limit:,} {unit} are allowed"
    return ToolError(Kind.LIMIT_EXCEEDED, message, details={"limit": limit})
