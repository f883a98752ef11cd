"""ZIP archives: the same files give the same bytes, and an archive that programs could read differently is refused."""

import io
import stat
import struct
import zipfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.lib.zip_archive import ArchiveLimits, read_archive, write_archive

FILES = {"bundle.json": b"{}", "tools/a@v1.json": b"one", "tools/b@v1.json": b"", "größe.txt": "天気".encode()}
UTF8 = 0x800


class Entry:
    """An entry as any program could write it; the header and the directory may tell different stories."""

    def __init__(self, name=b"a.json", data=b"content", **changes):
        self.name, self.data = name, data
        self.packed = changes.pop("packed", data)
        self.fields = {
            "made_by": 3 << 8 | 20,
            "flags": 0,
            "method": 0,
            "checksum": zlib.crc32(data),
            "packed_size": len(self.packed),
            "size": len(data),
            "attributes": (stat.S_IFREG | 0o644) << 16,
            "extra": b"",
            "comment": b"",
            "offset": None,
            **changes.pop("both", {}),
        }
        self.local = {**self.fields, "name": name, **changes.pop("local", {})}
        self.fields.update(changes)

    def header(self):
        f = self.local
        sizes = (f["checksum"], f["packed_size"], f["size"], len(f["name"]), len(f["extra"]))
        return struct.pack("<4s5H3L2H", b"PK\3\4", 20, f["flags"], f["method"], 0, 33, *sizes) + f["name"] + f["extra"]

    def directory(self, offset):
        f = self.fields
        offset = offset if f["offset"] is None else f["offset"]
        lengths = (len(self.name), len(f["extra"]), len(f["comment"]), 0, 0, f["attributes"], offset)
        sizes = (f["checksum"], f["packed_size"], f["size"])
        head = struct.pack("<4s6H3L5H2L", b"PK\1\2", f["made_by"], 20, f["flags"], f["method"], 0, 33, *sizes, *lengths)
        return head + self.name + f["extra"] + f["comment"]


def archive(*entries, prefix=b"", gap=b"", tail=b"", **end):
    body, directory = prefix, b""
    for entry in entries:
        directory += entry.directory(len(body))
        body += entry.header() + entry.packed
    body += gap
    said = {"count": len(entries), "size": len(directory), "start": len(body), "comment": 0, "disk": 0, **end}
    record = (said["disk"], said["disk"], said["count"], said["count"], said["size"], said["start"], said["comment"])
    return body + directory + struct.pack("<4s4H2LH", b"PK\5\6", *record) + tail


def refused(data, words="", kind=Kind.VALIDATION, **limits):
    with pytest.raises(ToolError) as caught:
        read_archive(data, ArchiveLimits(**limits))
    assert caught.value.kind is kind, caught.value.message
    assert caught.value.message.startswith("the archive was refused: ")
    assert words in caught.value.message
    return caught.value


def deflated(data):
    packing = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packing.compress(data) + packing.flush()


@pytest.mark.spec("S1-93")
def test_the_same_files_give_the_same_bytes_in_any_order():
    assert write_archive(FILES) == write_archive(dict(reversed(FILES.items())))
    assert read_archive(write_archive(FILES)) == FILES


def test_other_programs_read_what_is_written_and_what_they_write_is_read():
    with zipfile.ZipFile(io.BytesIO(write_archive(FILES))) as found:
        assert found.testzip() is None
        assert {name: found.read(name) for name in found.namelist()} == FILES
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as other:
        for name, data in FILES.items():
            other.writestr(name, data)
    assert read_archive(written.getvalue()) == FILES


NAMES = st.text(st.characters(codec="utf-8", categories=("Ll", "Nd", "Lo")), min_size=1, max_size=20)


@given(st.dictionaries(NAMES, st.binary(max_size=50), max_size=6))
def test_every_value_is_read_back_or_refused_when_it_is_written(files):
    try:
        data = write_archive(files)
    except ToolError:
        return
    assert read_archive(data) == files


@given(st.binary(max_size=120))
def test_bytes_that_are_no_archive_are_refused(data):
    refused(data)


@given(st.data())
def test_an_archive_with_any_byte_changed_is_refused_or_tells_of_the_same_files(data):
    whole = write_archive({"a.json": b"one", "b/c.json": b"two"})
    place = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[place] ^= data.draw(st.integers(1, 255))
    try:
        found = read_archive(bytes(changed))
    except ToolError:
        return
    # Versions, times and permissions are not looked at.
    assert found == {"a.json": b"one", "b/c.json": b"two"}


@pytest.mark.spec("S1-94")
@pytest.mark.parametrize(
    "name",
    [
        *(b"../a.json", b"a/../../b", b"/etc/passwd", b"a//b", b"./a", b"a/.", b"a/", b"", b"..", b"C:/a", b"C:a"),
        *(b"a\\..\\b", b"a\0b", b"a\nb", b"\x1b[2Ja", b"a.", b"a ", b" a", b"x" * 256, b"/".join([b"d"] * 9)),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(name):
    refused(archive(Entry(name)), "the name ")


@pytest.mark.spec("S1-94")
@pytest.mark.parametrize(
    "name", ["a\u202eb", "a\u200bb", "e\u0301", "\ufeffa", "\U000e0041"], ids=["bidi", "zero", "nfd", "bom", "tag"]
)
def test_a_name_that_cannot_be_seen_or_has_two_spellings_is_refused(name):
    refused(archive(Entry(name.encode(), both={"flags": UTF8})), "the name ")


def test_a_name_that_is_not_what_it_is_marked_as_is_refused():
    refused(archive(Entry(b"\xff\xfe", both={"flags": UTF8})), "not UTF-8")
    refused(archive(Entry("größe".encode())), "not marked as such")


@pytest.mark.spec("S1-94")
@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK])
def test_links_folders_and_devices_are_refused(kind):
    refused(archive(Entry(attributes=(kind | 0o777) << 16)), "is not a regular file")
    refused(archive(Entry(made_by=20, attributes=0x10)), "is not a regular file")


@pytest.mark.spec("S1-94")
@pytest.mark.parametrize(
    ("first", "second"), [(b"a", b"a"), (b"A", b"a"), ("ß".encode(), b"ss"), (b"a", b"a/b"), (b"A/b", b"a")]
)
def test_two_names_of_one_file_are_refused(first, second):
    refused(archive(Entry(first, both={"flags": UTF8}), Entry(second, both={"flags": UTF8})), "file")


@pytest.mark.spec("S1-94")
class TestBombs:
    def test_a_file_that_unpacks_to_more_than_it_declares_is_refused(self):
        bomb = deflated(b"0" * 5_000_000)
        refused(archive(Entry(data=b"0" * 100_000, packed=bomb, both={"method": 8})), "longer or shorter")

    def test_a_file_that_is_compressed_too_far_is_refused_before_it_is_unpacked(self):
        data = b"0" * 1_000_000
        found = refused(
            archive(Entry(data=data, packed=deflated(data), both={"method": 8})), "compressed", Kind.LIMIT_EXCEEDED
        )
        assert found.details == {"limit": 100}

    def test_files_beyond_a_limit_are_refused(self):
        refused(archive(Entry(data=b"12345")), "5 bytes", Kind.LIMIT_EXCEEDED, file_bytes=4)
        refused(archive(Entry(b"a"), Entry(b"b")), "together", Kind.LIMIT_EXCEEDED, total_bytes=13)
        refused(archive(Entry(b"a"), Entry(b"b")), "2 entries", Kind.LIMIT_EXCEEDED, entries=1)

    def test_overlapping_entries_are_refused(self):
        inner = Entry(b"a")
        quoted = Entry(b"b", inner.header() + inner.packed)
        refused(archive(quoted, Entry(b"c", offset=0)), "overlaps another entry")
        body = quoted.header() + quoted.packed
        directory = quoted.directory(0) + inner.directory(len(quoted.header()))
        end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, len(directory), len(body), 0)
        refused(body + directory + end, "overlaps another entry")

    def test_ten_million_entries_are_refused_without_being_read(self):
        # 20 MB of empty entries, whose number the end record cannot even say.
        entry = Entry(b"a", b"")
        directory = entry.directory(0) * 400_000
        end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(directory), len(entry.header()), 0)
        refused(entry.header() + directory + end, "holds more than its end record says")
        end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 60_000, 60_000, len(directory), len(entry.header()), 0)
        refused(entry.header() + directory + end, "60000 entries", Kind.LIMIT_EXCEEDED)


LONG = 0xFFFFFFFF


@pytest.mark.spec("S1-94")
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (archive(Entry(), prefix=b"#!/bin/sh\n"), "bytes that belong to no entry"),
        (archive(Entry(), gap=b"hidden"), "bytes that belong to no entry"),
        (archive(Entry(), tail=b"x"), "does not end as a ZIP archive"),
        (archive(Entry(), comment=1, tail=b"x"), "does not end as a ZIP archive"),
        (archive(Entry(), disk=1), "several parts"),
        (archive(Entry(data=archive(Entry()))), "second end record"),
        (archive(Entry(), count=0xFFFF), "ZIP64"),
        (archive(Entry(), start=LONG), "ZIP64"),
        (archive(Entry(), start=3), "its directory is not where"),
        (archive(Entry(), count=2), "holds less than"),
        (archive(Entry(comment=b"hello")), "has a comment"),
        (archive(Entry(both={"flags": 1})), "is encrypted"),
        (archive(Entry(both={"flags": 8})), "its sizes follow its data"),
        (archive(Entry(both={"flags": 0x2000})), "is encrypted"),
        (archive(Entry(both={"method": 14})), "by method 14"),
        (archive(Entry(data=b"\xff" * 7, both={"method": 8})), "cannot be unpacked"),
        (archive(Entry(both={"extra": struct.pack("<2HQ", 1, 8, 5)})), "extra field (0x0001)"),
        (archive(Entry(local={"extra": struct.pack("<2HQ", 1, 8, 5)})), "extra field (0x0001)"),
        (archive(Entry(both={"extra": struct.pack("<2H", 0x7075, 0)})), "extra field (0x7075)"),
        (archive(Entry(both={"extra": b"\1"})), "cut off"),
        (archive(Entry(both={"extra": struct.pack("<2H", 0x5455, 9)})), "extra field"),
        (archive(Entry(local={"name": b"b.json"})), "is described differently"),
        (archive(Entry(local={"size": 1})), "is described differently"),
        (archive(Entry(local={"method": 8})), "is described differently"),
        (archive(Entry(both={"checksum": 5})), "the checksum that it declares"),
        (archive(Entry(both={"size": 3})), "two sizes"),
        (archive(Entry(both={"packed_size": 500, "size": 500})), "is cut off"),
        (archive(Entry(both={"size": LONG, "packed_size": LONG})), "ZIP64"),
        (archive(Entry(data=b"x", packed=deflated(b"x") + b"more", both={"method": 8})), "longer or shorter"),
        (archive(Entry(offset=40)), "bytes that belong to no entry"),
    ],
)
def test_an_archive_that_programs_could_read_differently_is_refused(data, words):
    refused(data, words)


def test_what_could_not_be_read_back_is_not_written():
    for files, words in [
        ({"../a": b""}, "the name"),
        ({"A": b"", "a": b""}, "the same file"),
        ({"a\ud800": b""}, "the name"),
    ]:
        with pytest.raises(ToolError, match=words):
            write_archive(files)
    for limits in ({"entries": 1}, {"file_bytes": 2}, {"total_bytes": 3}):
        with pytest.raises(ToolError) as caught:
            write_archive({"a": b"xxx", "b": b"yyy"}, ArchiveLimits(**limits))
        assert caught.value.kind is Kind.LIMIT_EXCEEDED
