"""Protected paths are read and never written, by any route."""

import os
import shutil
import subprocess
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import Kind, ToolError
from toolcrib.infra.files.jail import Jail
from toolcrib.infra.files.safe_paths import Protection

LIMIT = 1000
SETTINGS = "toolcrib.toml"


@pytest.fixture
def root(root):
    (root / "tools" / "group").mkdir(parents=True)
    (root / "tools" / "x.py").write_text("tool")
    return root


@pytest.fixture
def protect(root, open_beneath):
    """A jail over the project that protects these of its paths."""
    jails = []

    def make(*names):
        paths = [root / name for name in names]
        jails.append(Jail(root, is_sensitive=lambda path: False, protected=paths, open_beneath=open_beneath))
        return jails[-1]

    yield make
    for jail in jails:
        jail.close()


@pytest.fixture
def jail(protect):
    return protect(SETTINGS, "tools", "package/module.py", ".toolcrib")


def snapshot(folder):
    """Everything there is, links as what they say."""
    return {
        path.relative_to(folder).as_posix(): path.readlink()
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in folder.rglob("*")
    }


def refuse(jail, root, path):
    """The refusal of a write that changed nothing; nor does anything else change there."""
    before = snapshot(root)
    for change in (jail.append, jail.write):
        with pytest.raises(ToolError) as caught:
            change(path, b"taken over")
        assert caught.value.kind is Kind.BLOCKED, caught.value.message
        assert snapshot(root) == before
    return caught.value


def refuse_deleting(jail, root, path):
    before = snapshot(root)
    with pytest.raises(ToolError) as caught:
        jail.delete(path)
    assert caught.value.kind is Kind.BLOCKED, caught.value.message
    assert snapshot(root) == before


def test_the_refusal_names_the_path_the_reason_and_the_cure(jail, root):
    error = refuse(jail, root, "src/../tools/x.py")
    assert error.message == (
        "'src/../tools/x.py' is protected: settings and tools of the project are not for tools to change; "
        "the operator may set `workspace` to another folder"
    )
    assert error.details == {"path": "src/../tools/x.py", "cure": error.cure.operator}


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("path", [SETTINGS, "./toolcrib.toml", "src/../toolcrib.toml", "src\\..\\toolcrib.toml"])
def test_a_protected_file_is_not_written_whether_it_is_there_or_not(jail, root, path, exists):
    if exists:
        (root / SETTINGS).write_text("")
    refuse(jail, root, path)
    refuse(jail, root, str(root / SETTINGS))


@pytest.mark.parametrize(
    "path",
    [
        "tools/x.py",
        "tools/new.py",
        "tools/group/new.py",
        "tools/new/deep/new.py",
        ".toolcrib",
        ".toolcrib/key",
        ".toolcrib/journal/new",
        "toolcrib.toml/below",
    ],
)
def test_nothing_at_or_below_a_protected_path_is_written_or_made(jail, root, path):
    refuse(jail, root, path)


def test_no_file_takes_the_place_of_a_folder_on_the_way_to_a_protected_path(jail, root):
    refuse(jail, root, "package")
    (root / "package").mkdir()
    refuse(jail, root, "package")
    refuse(jail, root, "package/module.py")


@pytest.mark.parametrize("path", ["tools/x.py", "tools/group", "tools", "src/../tools/x.py", "TOOLS/x.py", "up/x.py"])
def test_nothing_at_or_below_a_protected_path_is_deleted(jail, root, path):
    (root / "up").symlink_to("tools")
    (root / "TOOLS").mkdir()
    (root / "TOOLS" / "x.py").write_text("the same, where letters are not told apart")
    refuse_deleting(jail, root, path)


def test_a_protected_link_is_not_deleted_nor_what_it_leads_to(protect, root):
    (root / "real").mkdir()
    (root / "mine").symlink_to("real")
    jail = protect("mine")
    refuse_deleting(jail, root, "mine")
    refuse_deleting(jail, root, "real")


def test_a_folder_on_the_way_to_a_protected_path_is_not_deleted(jail, root):
    (root / "package").mkdir()
    refuse_deleting(jail, root, "package")


@pytest.mark.parametrize(
    "path", [".toolcrib", ".toolcrib/new", "tools/new", "tools/group/new", SETTINGS, "package/module.py"]
)
def test_no_folder_is_made_at_or_below_a_protected_path(jail, root, path):
    (root / "package").mkdir()
    before = snapshot(root)
    with pytest.raises(ToolError) as caught:
        jail.make_folder(path)
    assert caught.value.kind is Kind.BLOCKED, caught.value.message
    assert snapshot(root) == before


def test_a_folder_on_the_way_can_be_made_for_other_files(jail, root):
    jail.write("package/other.txt", b"other")
    assert (root / "package" / "other.txt").read_bytes() == b"other"


def test_what_only_resembles_a_protected_path_is_written(jail, root):
    for path in ("toolcrib.toml.txt", "tools2/x.py", "src/tools/x.py", "src/toolcrib.toml", "tool", "notes.txt"):
        jail.write(path, b"mine")
        assert (root / path).read_bytes() == b"mine"


def test_what_is_protected_can_be_read_and_listed(jail):
    assert jail.read("tools/x.py", LIMIT) == b"tool"
    assert [item.name for item in jail.list_folder("tools", LIMIT).items] == ["group", "x.py"]


class TestLinks:
    @pytest.mark.parametrize(
        ("target", "path"),
        [
            ("tools", "link/x.py"),
            ("tools", "link/new/new.py"),
            ("tools/x.py", "link"),
            ("tools/new.py", "link"),
            ("toolcrib.toml", "link"),
            ("src/../toolcrib.toml", "link"),
            ("tools/group", "link/../x.py"),
            ("package", "link"),
            ("src/second", "link"),
        ],
    )
    def test_a_link_is_no_way_to_a_protected_path(self, jail, root, target, path):
        (root / "src" / "second").symlink_to("../tools/x.py")
        (root / "link").symlink_to(target)
        refuse(jail, root, path)

    def test_a_protected_link_protects_what_it_leads_to(self, protect, root):
        (root / "src" / "real").mkdir()
        (root / "linked").symlink_to("src/real")
        (root / SETTINGS).symlink_to("src/settings.toml")
        jail = protect("linked", SETTINGS)
        for path in ("linked/x.py", "src/real/x.py", "src/real", SETTINGS, "src/settings.toml"):
            refuse(jail, root, path)
        jail.write("src/free.txt", b"")

    def test_a_protected_link_to_nothing_yet_keeps_that_place_free(self, protect, root):
        (root / "linked").symlink_to("src/coming")
        jail = protect("linked")
        for path in ("src/coming", "src/coming/x.py", "src/coming/new/x.py", "linked"):
            refuse(jail, root, path)

    def test_a_tool_that_is_kept_elsewhere_and_linked_is_protected_there(self, jail, root):
        (root / "tools" / "linked.py").symlink_to("../src/file.txt")
        (root / "tools" / "coming.py").symlink_to("../src/coming/tool.py")
        for path in ("src/file.txt", "tools/linked.py", "src/coming", "tools/coming.py"):
            refuse(jail, root, path)
        jail.write("src/other.txt", b"")

    def test_a_link_that_was_made_since_the_jail_was_opened_counts(self, jail, root):
        shutil.move(root / "tools", root / "src" / "moved")
        (root / "tools").symlink_to("src/moved")
        refuse(jail, root, "src/moved/x.py")

    def test_a_root_that_is_named_by_a_link_is_the_same_project(self, root, tmp_path, open_beneath):
        (tmp_path / "alias").symlink_to(root.name)
        for start, paths in ((tmp_path / "alias", [root / "tools"]), (root, [tmp_path / "alias" / "tools"])):
            with Jail(start, is_sensitive=lambda _: False, protected=paths, open_beneath=open_beneath) as jail:
                refuse(jail, root, "tools/x.py")
                refuse(jail, root, "tools/new.py")

    def test_a_loop_of_links_does_not_keep_other_files_from_being_written(self, protect, root):
        (root / "loop").symlink_to("loop")
        jail = protect("loop", "loop/below")
        jail.write("notes.txt", b"new")
        refuse(jail, root, "loop")

    def test_a_second_name_of_a_protected_file_is_not_replaced(self, jail, root):
        (root / SETTINGS).write_text("")
        os.link(root / SETTINGS, root / "second.toml")
        refuse(jail, root, "second.toml")

    def test_a_second_name_of_a_file_below_leaves_that_file_as_it_is(self, jail, root):
        os.link(root / "tools" / "x.py", root / "second.py")
        jail.write("second.py", b"mine")
        assert (root / "tools" / "x.py").read_bytes() == b"tool"


class TestOtherSpellings:
    """A file system that folds names is not at hand, so a name that some of them would fold is refused everywhere."""

    @pytest.mark.parametrize(
        "path",
        [
            "TOOLCRIB.TOML",
            "Toolcrib.toml",
            "toolcrib.toml.",
            "toolcrib.toml ",
            "tool\u200dcrib.toml",
            "\ufefftoolcrib.toml",
            "toolcrib\uff0etoml",
            "Tools/new.py",
            "TOOLS",
            "\u017fRC/../tools/x.py",
            "tool\u017f/new.py",
            "PACKAGE",
            "Package/MODULE.py",
        ],
    )
    def test_a_spelling_that_may_mean_a_protected_path_is_refused(self, jail, root, path):
        (root / "\u017fRC").mkdir()
        (root / "Package").mkdir()
        refuse(jail, root, path)

    def test_a_letter_and_its_accent_are_the_letter_with_the_accent(self, protect, root):
        refuse(protect("Größé"), root, unicodedata.normalize("NFD", "grösse\u0301"))

    @settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(name=st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12))
    def test_every_case_and_form_of_a_name_is_the_same_name(self, root, name):
        if name in {".", ".."}:
            return
        protection = Protection([root / name])
        descriptor = os.open(root, os.O_RDONLY)
        try:
            for form in ("NFC", "NFD", "NFKC", "NFKD"):
                for spelled in (name, name.upper(), name.lower(), name.casefold()):
                    other = unicodedata.normalize(form, spelled)
                    assert "/" in other or protection.bars_file(descriptor, f"{root}/{other}")
        finally:
            os.close(descriptor)


class TestIdentity:
    """What the kernel names otherwise, as a mount does, is known by what it is."""

    def bars(self, protection, folder, real):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            return protection.bars_folder(descriptor, real), protection.bars_file(descriptor, real)
        finally:
            os.close(descriptor)

    def test_a_folder_is_known_by_every_spelling_of_its_path(self, root):
        protection = Protection([root / "tools", root / SETTINGS])
        assert self.bars(protection, root / "tools", "/mounted/new.py") == (True, True)
        assert self.bars(protection, root / "tools" / "group", "/mounted/group/new.py") == (True, True)
        assert self.bars(protection, root, "/mounted/tools") == (True, True)
        assert self.bars(protection, root, f"/mounted/{SETTINGS}") == (True, True)
        assert self.bars(protection, root, "/mounted/Toolcrib.toml") == (True, True)
        assert self.bars(protection, root, "/mounted/notes.txt") == (False, False)
        assert self.bars(protection, root / "src", f"/mounted/{SETTINGS}") == (False, False)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
    def test_a_mount_of_a_protected_folder_is_protected(self, root):
        (root / "mounted").mkdir()
        program = (
            "import ctypes, os, sys; from pathlib import Path\n"
            "libc = ctypes.CDLL(None, use_errno=True); root = Path(sys.argv[1])\n"
            "private, bind = 0x44000, 0x1000\n"
            "if libc.unshare(0x20000) or libc.mount(b'none', b'/', None, private, None): sys.exit(77)\n"
            "if libc.mount(os.fsencode(root / 'tools'), os.fsencode(root / 'mounted'), None, bind, None): sys.exit(77)\n"
            "from toolcrib.infra.files.jail import Jail\n"
            "from toolcrib.model.errors import ToolError\n"
            "jail = Jail(root, is_sensitive=lambda _: False, protected=[root / 'tools'])\n"
            "for path in ('mounted/x.py', 'mounted/group/x.py', 'mounted/new/x.py'):\n"
            "    try: jail.write(path, b'taken over')\n"
            "    except ToolError as error: print(error.kind)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, root], capture_output=True, text=True, timeout=30, check=False
        )
        if done.returncode == 77:
            pytest.skip("this machine does not let us mount")
        assert (done.stdout.split(), done.stderr) == ([str(Kind.BLOCKED)] * 3, "")


PART = st.sampled_from(["..", ".", "tools", "Tools", "group", "src", "link", "up", "x.py", "new", SETTINGS, "package"])


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(PART, min_size=1, max_size=6))
def test_no_spelling_of_a_path_changes_what_is_protected(jail, root, parts):
    if not (root / "link").is_symlink():
        (root / "link").symlink_to("tools/group")
        (root / "src" / "up").symlink_to("../tools")
    before = snapshot(root / "tools")
    for change in (
        lambda path: jail.write(path, b"taken over"),
        lambda path: jail.append(path, b"!"),
        jail.make_folder,
    ):
        with suppress(ToolError):
            change("/".join(parts))
    assert snapshot(root / "tools") == before
    assert not (root / SETTINGS).exists()
    assert not (root / "package").is_file()


def test_no_descriptor_stays_open(jail):
    before = sorted(Path("/proc/self/fd").iterdir())
    for path in ("tools/x.py", "tools/a/b", SETTINGS, "package", "notes.txt"):
        for change in (lambda path: jail.write(path, b""), lambda path: jail.append(path, b""), jail.exists):
            with suppress(ToolError):
                change(path)
        for change in (jail.make_folder, jail.delete):
            with suppress(ToolError):
                change(path)
    assert sorted(Path("/proc/self/fd").iterdir()) == before
