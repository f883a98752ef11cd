"""Nothing outside the root is read, written or listed, however it is named."""

import errno
import os
import shutil
import socket
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import Kind, SettingsError, ToolError
from toolcrib.infra.files.jail import Jail
from toolcrib.infra.files.safe_paths import (
    MAX_LINKS,
    Opened,
    _openat2,
    _real_path,
    choose_opener,
    open_by_kernel,
    open_by_walk,
)

LIMIT = 1000


def refuse(action, *arguments):
    with pytest.raises(ToolError) as caught:
        action(*arguments)
    return caught.value


def attempt(action, *arguments):
    try:
        action(*arguments)
    except ToolError as error:
        return error
    return None


def every_file(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class TestSpelling:
    @pytest.mark.parametrize(
        "path",
        ["src/file.txt", "./src/file.txt", "src//file.txt", "src/../src/file.txt", "src\\file.txt", "src/./file.txt"],
    )
    def test_a_path_that_stays_inside_is_read(self, jail, path):
        assert jail.read(path, LIMIT) == b"inside"

    def test_an_absolute_path_inside_is_read(self, jail, root):
        assert jail.read(str(root / "src/file.txt"), LIMIT) == b"inside"

    def test_an_absolute_path_through_the_roots_own_link_is_read(self, make_jail, root, tmp_path):
        (tmp_path / "link").symlink_to("project")
        jail = make_jail(tmp_path / "link")
        assert jail.read(str(tmp_path / "link/notes.txt"), LIMIT) == b"notes"
        assert jail.read(str(root / "notes.txt"), LIMIT) == b"notes"

    @pytest.mark.parametrize("path", ["/etc/hostname", "\\etc\\hostname", "//etc/hostname", "/"])
    def test_an_absolute_path_outside_is_refused(self, jail, path):
        error = refuse(jail.read, path, LIMIT)
        assert error.kind is Kind.BLOCKED
        assert "lies outside the workspace; use a path relative to the workspace" in error.message

    def test_a_neighbour_whose_name_begins_like_the_root_is_outside(self, jail, root):
        neighbour = root.with_name("project-private")
        neighbour.mkdir()
        (neighbour / "file.txt").write_text("outside")
        assert refuse(jail.read, str(neighbour / "file.txt"), LIMIT).kind is Kind.BLOCKED

    @pytest.mark.parametrize(
        "path",
        [
            "../outside/file.txt",
            "src/../../outside/file.txt",
            "..",
            "..\\outside\\file.txt",
            "src/../.././outside/file.txt",
        ],
    )
    def test_dots_that_lead_out_are_refused(self, jail, path):
        error = refuse(jail.read, path, LIMIT)
        assert error.kind is Kind.BLOCKED
        assert error.message == f"{path!r} leads out of the workspace; use a path inside it, and only relative links"

    def test_dots_that_lead_out_of_an_absolute_path_are_refused(self, jail, root):
        assert refuse(jail.read, f"{root}/../outside/file.txt", LIMIT).kind is Kind.BLOCKED

    @pytest.mark.parametrize(
        "path", ["notes.txt\0", "no\ntes.txt", "\x7f", "a\x85b", "a\ud800b", "src/\x1b[2Jfile.txt"]
    )
    def test_a_control_character_is_refused(self, jail, path):
        error = refuse(jail.read, path, LIMIT)
        assert error.kind is Kind.VALIDATION
        assert error.message == f"{path!r} holds a control character; write the path without it"

    @pytest.mark.parametrize("path", ["", "a" * 5000, "a/" * 300, "b" * 300])
    def test_an_empty_or_endless_path_is_refused(self, jail, path):
        assert refuse(jail.read, path, LIMIT).kind is Kind.VALIDATION

    def test_the_error_shows_no_more_than_the_beginning_of_a_long_path(self, jail):
        assert len(refuse(jail.read, "a" * 1_000_000, LIMIT).message) < 400


class TestWorkspaceFolder:
    @pytest.fixture
    def workspace(self, tmp_path):
        folder = tmp_path / "workspace"
        folder.mkdir()
        return folder

    def test_a_leading_workspace_is_dropped_once(self, make_jail, workspace):
        jail = make_jail(workspace)
        jail.write("workspace/a.txt", b"a")
        assert every_file(workspace) == {"a.txt": b"a"}
        jail.write("workspace\\workspace\\b.txt", b"b")
        assert every_file(workspace) == {"a.txt": b"a", "workspace/b.txt": b"b"}

    def test_a_folder_named_workspace_inside_the_workspace_is_kept(self, make_jail, workspace):
        (workspace / "workspace").mkdir()
        make_jail(workspace).write("workspace/a.txt", b"a")
        assert every_file(workspace) == {"workspace/a.txt": b"a"}

    def test_an_absolute_path_means_what_it_says(self, make_jail, workspace):
        make_jail(workspace).write(f"{workspace}/workspace/a.txt", b"a")
        assert every_file(workspace) == {"workspace/a.txt": b"a"}

    def test_a_root_of_another_name_has_no_such_rule(self, jail, root):
        jail.write("workspace/a.txt", b"a")
        assert (root / "workspace/a.txt").read_bytes() == b"a"


class TestLinks:
    @pytest.mark.parametrize("target", ["../outside/file.txt", "src/../../outside/file.txt"])
    def test_a_link_that_leads_out_is_not_read(self, jail, root, target):
        (root / "link").symlink_to(target)
        assert refuse(jail.read, "link", LIMIT).kind is Kind.BLOCKED

    def test_an_absolute_link_is_not_read_even_if_it_stays_inside(self, jail, root, outside):
        (root / "out").symlink_to(outside / "file.txt")
        (root / "in").symlink_to(root / "notes.txt")
        assert refuse(jail.read, "out", LIMIT).kind is Kind.BLOCKED
        assert refuse(jail.read, "in", LIMIT).kind is Kind.BLOCKED

    def test_a_folder_link_that_leads_out_is_not_entered(self, jail, root, outside):
        (root / "link").symlink_to("../outside")
        assert refuse(jail.read, "link/file.txt", LIMIT).kind is Kind.BLOCKED
        assert refuse(jail.list_folder, "link", LIMIT).kind is Kind.BLOCKED
        assert refuse(jail.write, "link/new.txt", b"").kind is Kind.BLOCKED
        assert refuse(jail.write, "link/new/new.txt", b"").kind is Kind.BLOCKED
        assert every_file(outside) == {"file.txt": b"outside"}

    def test_a_link_that_stays_inside_is_followed(self, jail, root):
        (root / "link").symlink_to("src/../src/file.txt")
        (root / "folder").symlink_to("src")
        (root / "src" / "up").symlink_to("../notes.txt")
        assert jail.read("link", LIMIT) == b"inside"
        assert jail.read("folder/file.txt", LIMIT) == b"inside"
        assert jail.read("folder/up", LIMIT) == b"notes"

    def test_dots_after_a_link_count_from_where_the_link_leads(self, jail, root):
        (root / "src" / "deep").mkdir()
        (root / "link").symlink_to("src/deep")
        assert jail.read("link/../file.txt", LIMIT) == b"inside"

    def test_a_link_to_itself_ends(self, jail, root):
        (root / "loop").symlink_to("loop")
        assert refuse(jail.read, "loop", LIMIT).kind is Kind.BLOCKED
        assert refuse(jail.read, "loop/file.txt", LIMIT).kind is Kind.BLOCKED
        assert refuse(jail.write, "loop", b"").kind is Kind.BLOCKED

    def test_as_many_links_are_followed_as_the_kernel_follows(self, jail, root):
        for number in range(MAX_LINKS):
            (root / f"link{number}").symlink_to(f"link{number + 1}")
        (root / f"link{MAX_LINKS}").write_text("end")
        assert jail.read("link0", LIMIT) == b"end"
        (root / "one-too-many").symlink_to("link0")
        assert refuse(jail.read, "one-too-many", LIMIT).kind is Kind.BLOCKED

    def test_a_link_into_proc_is_not_a_way_out(self, jail, root, outside):
        descriptor = os.open(outside / "file.txt", os.O_RDONLY)
        try:
            (root / "magic").symlink_to(f"/proc/self/fd/{descriptor}")
            assert refuse(jail.read, "magic", LIMIT).kind is Kind.BLOCKED
        finally:
            os.close(descriptor)

    def test_a_magic_link_beneath_the_root_is_not_followed(self, make_jail):
        jail = make_jail(Path("/proc/self"))
        assert refuse(jail.read, "root/etc/hostname", LIMIT).kind is Kind.BLOCKED


class TestRead:
    def test_the_limit_itself_is_allowed_and_one_more_is_not(self, jail, root):
        (root / "full").write_bytes(b"x" * LIMIT)
        assert jail.read("full", LIMIT) == b"x" * LIMIT
        (root / "full").write_bytes(b"x" * (LIMIT + 1))
        error = refuse(jail.read, "full", LIMIT)
        assert error.kind is Kind.LIMIT_EXCEEDED
        assert error.message == "'full' has 1001 bytes, the limit is 1000 bytes; read a smaller file"

    def test_a_file_that_tells_no_size_is_bounded_all_the_same(self, make_jail):
        jail = make_jail(Path("/proc/self"))
        assert refuse(jail.read, "smaps", 10).kind is Kind.LIMIT_EXCEEDED

    def test_a_file_without_permissions_for_others_is_read_by_its_owner(self, jail, root):
        (root / "notes.txt").chmod(0o400)
        assert jail.read("notes.txt", LIMIT) == b"notes"

    @pytest.mark.parametrize(
        ("path", "kind"),
        [
            ("missing.txt", Kind.NOT_FOUND),
            ("missing/deeper.txt", Kind.NOT_FOUND),
            ("src", Kind.VALIDATION),
            (".", Kind.VALIDATION),
            ("notes.txt/below", Kind.VALIDATION),
        ],
    )
    def test_what_is_no_file_is_named_with_its_path(self, jail, path, kind):
        error = refuse(jail.read, path, LIMIT)
        assert error.kind is kind
        assert error.message.startswith(f"{path!r} ")
        assert "; " in error.message

    def test_a_fifo_is_refused_without_blocking(self, jail, root):
        os.mkfifo(root / "fifo")
        error = refuse(jail.read, "fifo", LIMIT)
        assert error.message == "'fifo' is not a regular file; name a regular file"
        assert refuse(jail.list_folder, "fifo", LIMIT).kind is Kind.VALIDATION
        assert refuse(jail.write, "fifo", b"").kind is Kind.VALIDATION
        assert stat.S_ISFIFO((root / "fifo").stat().st_mode)

    def test_a_socket_is_refused(self, jail, root, monkeypatch):
        monkeypatch.chdir(root)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
            assert refuse(jail.read, "socket", LIMIT).kind is Kind.VALIDATION
            assert refuse(jail.write, "socket", b"").kind is Kind.VALIDATION

    def test_a_file_with_a_second_name_is_refused_because_that_may_lie_outside(self, jail, root, outside):
        os.link(outside / "file.txt", root / "hard.txt")
        error = refuse(jail.read, "hard.txt", LIMIT)
        assert error.kind is Kind.BLOCKED
        assert "'hard.txt' has 2 names" in error.message

    def test_no_descriptor_stays_open(self, jail, root):
        (root / "link").symlink_to("src/../../outside")
        jail.read("src/file.txt", LIMIT)
        before = names(Path("/proc/self/fd"))
        for path in ("src/file.txt", "src/../src/file.txt", "missing", "src", "../x", "link", ".env", "notes.txt/x"):
            attempt(jail.read, path, 1)
            attempt(jail.list_folder, path, 1)
            refuse(jail.write, f"{path}/..", b"")
        jail.write("src/new/file.txt", b"")
        assert names(Path("/proc/self/fd")) == before


class TestSensitiveFiles:
    def test_a_sensitive_file_is_not_read_under_any_name(self, jail, root):
        (root / ".env").write_text("KEY=1")
        (root / "link").symlink_to(".env")
        for path in (".env", "link", "src/../.env", str(root / ".env")):
            error = refuse(jail.read, path, LIMIT)
            assert error.kind is Kind.BLOCKED
            assert error.message.startswith(f"{path!r} is a sensitive file; ")

    def test_a_sensitive_folder_is_not_listed_through_a_link(self, jail, root):
        (root / ".ssh").mkdir()
        (root / "keys").symlink_to(".ssh")
        assert refuse(jail.list_folder, "keys", LIMIT).kind is Kind.BLOCKED

    def test_a_sensitive_file_is_not_written_under_any_name(self, jail, root):
        (root / "link").symlink_to(".env")
        for path in (".env", "link", "src/../.env", ".ssh/new/key", "new/.env"):
            assert refuse(jail.write, path, b"x").kind is Kind.BLOCKED
        assert names(root) == ["link", "notes.txt", "src"]

    def test_a_sensitive_folder_behind_a_link_gets_no_new_folder(self, jail, root):
        (root / ".ssh").mkdir()
        (root / "keys").symlink_to(".ssh")
        assert refuse(jail.write, "keys/new/key", b"x").kind is Kind.BLOCKED
        assert names(root / ".ssh") == []

    def test_a_sensitive_file_that_vanishes_while_it_is_opened_is_still_sensitive(self, root):
        (root / ".env").write_text("KEY=1")

        def open_then_remove(descriptor, parts, flags):
            file = os.open(".env", flags, dir_fd=descriptor)
            (root / ".env").unlink()
            return Opened(file, Path(f"/proc/self/fd/{file}").readlink().name)

        judged = []

        def is_exactly_the_environment_file(path):
            judged.append(path)
            return path.endswith("/.env")

        with Jail(root, is_sensitive=is_exactly_the_environment_file, open_beneath=open_then_remove) as jail:
            assert refuse(jail.read, ".env", LIMIT).kind is Kind.BLOCKED
        assert judged == [f"{root}/.env (deleted)", f"{root}/.env"]

    def test_the_root_itself_is_the_operators_choice(self, root):
        with Jail(root, is_sensitive=lambda path: path.endswith("/project")) as jail:
            assert jail.list_folder(".", LIMIT).complete


class TestWrite:
    def test_folders_on_the_way_are_made(self, jail, root):
        jail.write("a/b/c/new.txt", b"new")
        assert (root / "a/b/c/new.txt").read_bytes() == b"new"

    def test_two_hundred_folders_on_the_way_are_made(self, jail, root, monkeypatch):
        monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # four hundred of them say nothing about depth
        path = "d/" * 200 + "new.txt"
        jail.write(path, b"new")
        assert (root / path).read_bytes() == b"new"

    def test_an_existing_file_is_replaced_and_keeps_its_permissions(self, jail, root):
        (root / "notes.txt").chmod(0o640)
        before = (root / "notes.txt").stat()
        jail.write("notes.txt", b"short")
        after = (root / "notes.txt").stat()
        assert (root / "notes.txt").read_bytes() == b"short"
        assert stat.S_IMODE(after.st_mode) == 0o640
        assert after.st_ino != before.st_ino

    @pytest.mark.skipif(
        os.geteuid() != 0, reason="only root can give a file away, and so only root can take it from its owner"
    )
    def test_an_existing_file_keeps_its_owner(self, jail, root):
        os.chown(root / "notes.txt", 12345, 23456)
        jail.write("notes.txt", b"new")
        status = (root / "notes.txt").stat()
        assert (status.st_uid, status.st_gid) == (12345, 23456)

    def test_a_new_file_has_the_usual_permissions(self, jail, root):
        old = os.umask(0o027)
        try:
            jail.write("new.txt", b"")
        finally:
            os.umask(old)
        assert stat.S_IMODE((root / "new.txt").stat().st_mode) == 0o640

    def test_a_read_only_file_is_not_replaced(self, jail, root):
        (root / "notes.txt").chmod(0o444)
        error = refuse(jail.write, "notes.txt", b"new")
        assert error.kind is Kind.PERMANENT
        assert error.message == "'notes.txt' is read-only; make it writable (chmod u+w) or write another file"
        assert (root / "notes.txt").read_bytes() == b"notes"

    def test_a_link_inside_is_written_through_and_stays_a_link(self, jail, root):
        (root / "link").symlink_to("src/other")
        (root / "src" / "other").symlink_to("../notes.txt")
        jail.write("link", b"through")
        assert (root / "notes.txt").read_bytes() == b"through"
        assert (root / "link").is_symlink()
        assert (root / "src" / "other").is_symlink()

    def test_a_link_to_nothing_yet_gets_its_file(self, jail, root):
        (root / "link").symlink_to("src/new.txt")
        jail.write("link", b"new")
        assert (root / "src/new.txt").read_bytes() == b"new"

    @pytest.mark.parametrize(
        "target", ["../outside/file.txt", "../outside/new.txt", "{outside}/file.txt", "{outside}/new.txt"]
    )
    def test_a_link_that_leads_out_is_not_written_through(self, jail, root, outside, target):
        (root / "link").symlink_to(target.format(outside=outside))
        assert refuse(jail.write, "link", b"escaped").kind is Kind.BLOCKED
        assert every_file(outside) == {"file.txt": b"outside"}

    def test_a_second_name_outside_keeps_the_old_content(self, jail, root, outside):
        os.link(outside / "file.txt", root / "hard.txt")
        jail.write("hard.txt", b"new")
        assert every_file(outside) == {"file.txt": b"outside"}

    @pytest.mark.parametrize(
        ("path", "kind"),
        [
            ("src", Kind.VALIDATION),
            (".", Kind.VALIDATION),
            ("src/..", Kind.VALIDATION),
            ("notes.txt/new.txt", Kind.VALIDATION),
            ("../new.txt", Kind.BLOCKED),
            ("new/../../new.txt", Kind.BLOCKED),
            ("a/" + "b" * 300, Kind.VALIDATION),
        ],
    )
    def test_where_no_file_can_be_none_is_written(self, jail, root, tmp_path, path, kind):
        before = every_file(tmp_path)
        assert refuse(jail.write, path, b"new").kind is kind
        assert every_file(tmp_path) == before


class TestAppend:
    def test_it_adds_to_the_end(self, jail, root):
        jail.append("notes.txt", b" and")
        jail.append("notes.txt", b" more")
        assert (root / "notes.txt").read_text() == "notes and more"

    def test_a_file_that_is_missing_is_made_with_its_folders(self, jail, root):
        jail.append("a/b/c.txt", b"new")
        assert (root / "a/b/c.txt").read_text() == "new"
        assert names(root / "a/b") == ["c.txt"]

    def test_a_link_inside_is_followed_and_one_that_leads_out_is_not(self, jail, root, outside):
        (root / "inside").symlink_to("notes.txt")
        (root / "out").symlink_to("../outside/file.txt")
        (root / "new out").symlink_to("../outside/new.txt")
        jail.append("inside", b"!")
        assert refuse(jail.append, "new out", b"!").kind is Kind.BLOCKED
        assert refuse(jail.append, "out", b"!").kind is Kind.BLOCKED
        assert (root / "notes.txt").read_text() == "notes!"
        assert every_file(outside) == {"file.txt": b"outside"}

    def test_a_link_that_appears_at_the_last_moment_is_not_followed(self, jail, root, outside, monkeypatch):
        monkeypatch.setattr("toolcrib.infra.files.jail.read_link", lambda folder, name: None)
        (root / "out").symlink_to("../outside/file.txt")
        assert refuse(jail.append, "out", b"!").kind is Kind.BLOCKED
        assert (outside / "file.txt").read_text() == "outside"

    def test_a_file_with_a_second_name_is_refused_because_that_may_lie_outside(self, jail, root, outside):
        os.link(outside / "file.txt", root / "second")
        assert "has 2 names" in refuse(jail.append, "second", b"!").message
        assert (outside / "file.txt").read_text() == "outside"

    def test_a_sensitive_or_read_only_file_is_not_extended(self, jail, root):
        (root / ".env").write_text("secret")
        (root / "notes.txt").chmod(0o444)
        assert refuse(jail.append, ".env", b"!").kind is Kind.BLOCKED
        assert refuse(jail.append, "notes.txt", b"!").kind is Kind.PERMANENT
        assert ((root / ".env").read_text(), (root / "notes.txt").read_text()) == ("secret", "notes")

    def test_a_fifo_with_a_reader_gets_nothing(self, jail, root):
        os.mkfifo(root / "pipe")
        reader = os.open(root / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        try:
            assert refuse(jail.append, "pipe", b"!").kind is Kind.VALIDATION
            assert os.read(reader, 10) == b""
        finally:
            os.close(reader)

    @pytest.mark.parametrize("path", [".", "src", "src/.."])
    def test_a_folder_is_no_file(self, jail, path):
        assert refuse(jail.append, path, b"!").kind is Kind.VALIDATION

    def test_what_was_written_in_part_is_told(self, jail, root, monkeypatch):
        write = os.write
        turns = iter([lambda file, data: write(file, data[:2])])

        def full(file, data):
            turn = next(turns, None)
            if turn is None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return turn(file, data)

        monkeypatch.setattr(os, "write", full)
        error = refuse(jail.append, "notes.txt", b"1234")
        assert (error.kind, error.partial_side_effects) == (Kind.PERMANENT, True)
        assert (root / "notes.txt").read_text() == "notes12"

    def test_nothing_is_said_to_remain_when_nothing_was_written(self, jail, root, faults):
        with faults(["write"], 1, errno.ENOSPC):
            error = refuse(jail.append, "notes.txt", b"1234")
        assert (error.kind, error.partial_side_effects) == (Kind.PERMANENT, False)

    def test_what_several_add_at_once_all_stays(self, jail, root):
        def add(number):
            for _ in range(50):
                jail.append("log.txt", f"{number}\n".encode())

        threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=20)
        lines = (root / "log.txt").read_text().splitlines()
        assert sorted(lines) == sorted(str(number) for number in range(4) for _ in range(50))


class TestExists:
    @pytest.mark.parametrize(
        ("path", "there"),
        [(".", True), ("src", True), ("src/file.txt", True), ("src/..", True), ("no", False), ("notes.txt/a", False)],
    )
    def test_it_tells_whether_anything_is_there(self, jail, path, there):
        assert jail.exists(path) is there

    def test_a_link_counts_as_what_it_leads_to(self, jail, root, outside):
        (root / "good").symlink_to("notes.txt")
        (root / "dangling").symlink_to("nothing")
        (root / "out").symlink_to("../outside/file.txt")
        assert (jail.exists("good"), jail.exists("dangling")) == (True, False)
        assert refuse(jail.exists, "out").kind is Kind.BLOCKED

    def test_a_socket_and_a_fifo_are_there(self, jail, root, monkeypatch):
        monkeypatch.chdir(root)
        os.mkfifo("pipe")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("socket")
        assert (jail.exists("pipe"), jail.exists("socket")) == (True, True)

    @pytest.mark.parametrize("path", ["../outside", "/etc/hostname", "../nothing"])
    def test_nothing_is_told_of_the_outside(self, jail, path):
        assert refuse(jail.exists, path).kind is Kind.BLOCKED

    def test_whether_a_sensitive_file_is_there_is_not_told(self, jail, root):
        before = refuse(jail.exists, ".env").message
        (root / ".env").write_text("secret")
        (root / "alias").symlink_to(".env")
        assert refuse(jail.exists, ".env").message == before
        assert refuse(jail.exists, "alias").kind is Kind.BLOCKED


class TestDelete:
    def test_a_file_is_gone(self, jail, root):
        jail.delete("src/file.txt")
        assert names(root / "src") == []

    def test_an_empty_folder_is_gone_and_a_full_one_stays(self, jail, root):
        (root / "empty").mkdir()
        jail.delete("empty")
        error = refuse(jail.delete, "src")
        assert error.kind is Kind.VALIDATION
        assert error.message == "'src' is a folder that is not empty; delete what is in it first"
        assert names(root) == ["notes.txt", "src"]

    @pytest.mark.parametrize("target", ["notes.txt", "src", "nothing", "../outside/file.txt", "../outside"])
    def test_of_a_link_the_link_is_gone_and_nothing_else(self, jail, root, outside, target):
        before = {**every_file(root), **every_file(outside)}
        (root / "link").symlink_to(target)
        jail.delete("link")
        assert not (root / "link").is_symlink()
        assert {**every_file(root), **every_file(outside)} == before

    def test_nothing_is_deleted_through_a_folder_link_that_leads_out(self, jail, root, outside):
        (root / "out").symlink_to("../outside")
        assert refuse(jail.delete, "out/file.txt").kind is Kind.BLOCKED
        assert (outside / "file.txt").read_text() == "outside"

    @pytest.mark.parametrize(
        ("path", "kind"),
        [
            (".", Kind.VALIDATION),
            ("src/..", Kind.VALIDATION),
            ("..", Kind.VALIDATION),
            ("../outside/file.txt", Kind.BLOCKED),
            ("/etc/hostname", Kind.BLOCKED),
            ("no", Kind.NOT_FOUND),
            ("no/no", Kind.NOT_FOUND),
        ],
    )
    def test_what_cannot_be_deleted_is_refused(self, jail, root, path, kind):
        assert refuse(jail.delete, path).kind is kind
        assert names(root) == ["notes.txt", "src"]

    def test_a_sensitive_or_read_only_file_or_a_fifo_stays(self, jail, root):
        (root / ".env").write_text("secret")
        (root / "notes.txt").chmod(0o444)
        os.mkfifo(root / "pipe")
        kinds = [refuse(jail.delete, path).kind for path in (".env", "notes.txt", "pipe")]
        assert kinds == [Kind.BLOCKED, Kind.PERMANENT, Kind.VALIDATION]
        assert names(root) == [".env", "notes.txt", "pipe", "src"]

    def test_a_deletion_that_may_not_last_is_told(self, jail, root, faults):
        with faults(["fsync"], 1, errno.EIO):
            assert refuse(jail.delete, "notes.txt").partial_side_effects is True


class TestMakeFolder:
    def test_folders_are_made_once(self, jail, root):
        assert jail.make_folder("a/b/c") is True
        assert jail.make_folder("a/b/c") is False
        assert (root / "a/b/c").is_dir()

    def test_the_root_is_there_already(self, jail):
        assert jail.make_folder(".") is False

    @pytest.mark.parametrize(
        ("path", "kind"),
        [
            ("notes.txt", Kind.VALIDATION),
            ("notes.txt/a", Kind.VALIDATION),
            ("../new", Kind.BLOCKED),
            ("/new", Kind.BLOCKED),
            (".ssh/a", Kind.BLOCKED),
        ],
    )
    def test_where_no_folder_can_be_none_is_made(self, jail, root, tmp_path, path, kind):
        assert refuse(jail.make_folder, path).kind is kind
        assert names(root) == ["notes.txt", "src"]
        assert names(tmp_path) == ["outside", "project"]

    def test_none_is_made_through_a_link_that_leads_out(self, jail, root, outside):
        (root / "out").symlink_to("../outside")
        assert refuse(jail.make_folder, "out/new").kind is Kind.BLOCKED
        assert names(outside) == ["file.txt"]


class TestFaults:
    """The n-th call fails: the old content is whole, the error says why, and nothing else is left."""

    CALLS = ("open", "write", "fsync", "rename", "fchmod", "mkdir", "stat", "fstat", "readlink")

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EMFILE, errno.EDQUOT])
    @pytest.mark.parametrize("path", ["notes.txt", "new/folder/new.txt"])
    def test_every_failing_call_leaves_the_old_or_the_new(self, jail, root, faults, number, path):
        before = every_file(root)
        after = before | {path: b"new"}
        for n in range(1, 100):
            with faults(self.CALLS, n, number) as run:
                error = attempt(jail.write, path, b"new")
            if error is None:
                break
            assert error.kind is Kind.PERMANENT
            assert repr(path) in error.message
            assert every_file(root) == (after if error.partial_side_effects else before)
            assert not error.partial_side_effects or run.name == "fsync"
            shutil.rmtree(root / "new", ignore_errors=True)
            (root / "notes.txt").write_bytes(b"notes")
        assert n > 5
        assert not run.failed
        assert every_file(root) == after

    def test_a_new_folder_is_synced_into_its_parent_before_the_file_is_written(self, jail, monkeypatch):
        seen = []
        for name in ("mkdir", "fsync", "write", "rename"):
            real = getattr(os, name)
            monkeypatch.setattr(os, name, lambda *a, name=name, real=real, **o: seen.append(name) or real(*a, **o))
        jail.write("a/b/new.txt", b"new")
        assert seen == ["mkdir", "fsync", "mkdir", "fsync", "write", "fsync", "rename", "fsync"]

    def test_short_writes_are_carried_on(self, jail, root, monkeypatch):
        real = os.write
        monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data[:7])))
        jail.write("new.txt", b"0123456789" * 20)
        assert (root / "new.txt").read_bytes() == b"0123456789" * 20


class TestListFolder:
    def test_items_come_sorted_with_type_and_size(self, jail, root):
        (root / "link").symlink_to("/etc")
        os.mkfifo(root / "fifo")
        listing = jail.list_folder(".", LIMIT)
        assert listing.complete
        assert [(item.name, item.type, item.size) for item in listing.items] == [
            ("fifo", "other", None),
            ("link", "symlink", None),
            ("notes.txt", "file", 5),
            ("src", "directory", None),
        ]

    def test_a_name_that_is_not_utf8_is_shown_with_escapes(self, jail, root):
        (root / "src" / os.fsdecode(b"caf\xe9")).touch()
        assert [item.name for item in jail.list_folder("src", LIMIT).items] == ["caf\\xe9", "file.txt"]

    def test_more_items_than_the_limit_are_not_listed(self, jail, root):
        listing = jail.list_folder(".", 1)
        assert (len(listing.items), listing.complete) == (1, False)
        assert jail.list_folder(".", 2).complete

    def test_a_file_is_not_a_folder(self, jail):
        error = refuse(jail.list_folder, "notes.txt", LIMIT)
        assert error.message == "'notes.txt' is not a folder; list the folder that holds it, or read the file"


class TestTheJailItself:
    def test_a_root_that_does_not_exist_is_refused(self, tmp_path):
        with pytest.raises(SettingsError, match="No such file or directory; create the folder or name another one"):
            Jail(tmp_path / "missing", is_sensitive=lambda path: False)

    def test_a_root_that_is_a_file_is_refused(self, root):
        with pytest.raises(SettingsError, match="Not a directory"):
            Jail(root / "notes.txt", is_sensitive=lambda path: False)

    def test_a_closed_jail_opens_nothing(self, jail):
        jail.close()
        jail.close()
        assert refuse(jail.read, "notes.txt", LIMIT).kind is Kind.PERMANENT
        assert refuse(jail.write, "workspace", b"").kind is Kind.PERMANENT

    def test_the_root_may_be_renamed_and_stays_the_root(self, jail, root):
        root.rename(root.with_name("renamed"))
        assert jail.read("src/file.txt", LIMIT) == b"inside"

    def test_the_kernels_way_is_chosen_where_it_works(self, root):
        descriptor = os.open(root, os.O_RDONLY)
        try:
            assert choose_opener(descriptor) is open_by_kernel
        finally:
            os.close(descriptor)

    @pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM, errno.E2BIG])
    def test_the_walk_is_chosen_where_the_kernel_refuses(self, root, monkeypatch, number):
        def refuse_openat2(*arguments):
            raise OSError(number, "refused")

        monkeypatch.setattr("toolcrib.infra.files.safe_paths._openat2", lambda: refuse_openat2)
        with Jail(root, is_sensitive=lambda path: False) as jail:
            assert jail._open_beneath is open_by_walk
            assert jail.read("notes.txt", LIMIT) == b"notes"

    def test_the_walk_is_chosen_on_other_systems(self, root, monkeypatch):
        monkeypatch.setattr("sys.platform", "darwin")
        with Jail(root, is_sensitive=lambda path: False) as jail:
            assert jail._open_beneath is open_by_walk

    def test_what_was_moved_out_since_it_was_opened_is_refused(self, root):
        (root.with_name("project-private")).mkdir()
        descriptors = [os.open(folder, os.O_RDONLY) for folder in (root, root.with_name("project-private"))]
        try:
            with pytest.raises(OSError, match="cross-device"):
                _real_path(*descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    @pytest.mark.parametrize(("failures", "settles"), [(99, True), (100, False)])
    def test_a_kernel_that_cannot_judge_is_asked_a_bounded_number_of_times(self, root, monkeypatch, failures, settles):
        with Jail(root, is_sensitive=lambda path: False) as jail:
            asked = []
            real = _openat2()

            def unsettled(*arguments):
                asked.append(arguments)
                if len(asked) <= failures:
                    raise OSError(errno.EAGAIN, "again")
                return real(*arguments)

            monkeypatch.setattr("toolcrib.infra.files.safe_paths._openat2", lambda: unsettled)
            error = attempt(jail.read, "notes.txt", LIMIT)
        assert len(asked) == 100
        assert (error is None) is settles
        assert settles or (error.kind, error.retryable) == (Kind.TRANSIENT, True)

    def test_the_walk_holds_a_bounded_number_of_folders_open(self, root):
        (root / ("d/" * 260)).mkdir(parents=True)
        (root / "far").symlink_to("d/" * 260)
        with Jail(root, is_sensitive=lambda path: False, open_beneath=open_by_walk) as jail:
            assert refuse(jail.list_folder, "far/d", LIMIT).kind is Kind.VALIDATION


PART = st.sampled_from(["..", ".", "", "src", "deep", "link", "up", "out", "abs", "file.txt", "notes.txt", "missing"])


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(PART, min_size=1, max_size=8))
def test_both_ways_agree_and_neither_leads_out(root, outside, parts):
    if not (root / "link").is_symlink():
        (root / "src" / "deep").mkdir()
        (root / "link").symlink_to("src/deep")
        (root / "src" / "deep" / "up").symlink_to("../..")
        (root / "out").symlink_to("../outside")
        (root / "src" / "abs").symlink_to(outside)
    path = "/".join(parts).lstrip("/") or "."
    answers = []
    for way in (open_by_kernel, open_by_walk):
        with Jail(root, is_sensitive=lambda _: False, open_beneath=way) as jail:
            try:
                answers.append(jail.read(path, LIMIT))
            except ToolError as error:
                answers.append((error.kind, error.message))
    assert answers[0] == answers[1]
    assert answers[0] != b"outside"


def test_a_fixed_name_is_judged_by_its_whole_path(root):
    (root / "deep").mkdir()
    with Jail(root, is_sensitive=lambda _: False, is_fixed=lambda path, **_: path == "deep/.git") as jail:
        for act in (lambda: jail.make_folder("deep/.git"), lambda: jail.write("deep/.git", b"gitdir: elsewhere")):
            with pytest.raises(ToolError) as refused:
                act()
            assert refused.value.kind is Kind.BLOCKED
            assert refused.value.details["path"] == "deep/.git"
        jail.make_folder("deep/other")
        jail.make_folder("deep/other/.git")
    assert not (root / "deep" / ".git").exists()
    assert (root / "deep" / "other" / ".git").is_dir()


def test_a_write_that_is_refused_for_its_name_leaves_no_folder(root):
    (root / "link").symlink_to("real")
    (root / "real").mkdir()
    before = sorted(root.rglob("*"))
    with Jail(
        root,
        is_sensitive=lambda path: path.endswith("/.env"),
        is_fixed=lambda path, **_: path in {"new/HEAD", "real/a/HEAD", "b/HEAD"},
        protected_endings=("toolcrib.toml",),
    ) as jail:
        for path in ("new/HEAD", "link/a/HEAD", "a/../b/HEAD", "new/deeper/.env", "new/deeper/toolcrib.toml"):
            for act in (jail.write, jail.append):
                with pytest.raises(ToolError):
                    act(path, b"planted")
        assert sorted(root.rglob("*")) == before
        jail.write("link/a/b/HEAD", b"a branch")
    assert (root / "real" / "a" / "b" / "HEAD").read_bytes() == b"a branch"
