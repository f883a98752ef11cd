"""Looking secrets up: which place counts first, what is refused, and what lies on disk."""

import base64
import json
import os
import stat
import subprocess
import sys
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolcrib import SettingsError, ToolError
from toolcrib.infra import files as stamps_module
from toolcrib.infra.secrets import lookup
from toolcrib.infra.secrets.secret import MASK, MAX_BYTES
from warm_python import WarmPython

VALUE = "sesame-9f1c-ünï"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / ".toolcrib"


@pytest.fixture
def listed(tmp_path):
    path = tmp_path / "secrets.env"

    def write(text, mode=0o600):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path

    return write


def secrets_of(folder=None, environment=(), **options):
    return lookup.Secrets(folder, environment=dict(environment), **options)


def reveal(secrets, name):
    found = secrets.get(name)
    return None if found is None else found.reveal()


def document_of(folder):
    return json.loads((folder / "secrets.json").read_text())


def write_document(folder, document):
    (folder / "secrets.json").write_text(json.dumps(document))


def test_the_environment_counts_before_the_file_and_the_file_before_the_project(folder, listed):
    file = listed("A=of the file\nB=of the file\n")
    secrets = secrets_of(folder, {"A": "of the environment", "D": "not listed"}, names=("A", "E"), file=file)
    for name in "ABC":
        secrets.set(name, "of the project")
    assert [reveal(secrets, name) for name in "ABCDE"] == [
        *("of the environment", "of the file", "of the project", None, None)
    ]
    assert secrets.names() == ["A", "B", "C"]
    assert secrets.places() == {"A": "the environment", "B": str(file), "C": "this project"}


def test_an_empty_variable_is_no_secret(folder):
    secrets = secrets_of(folder, {"A": ""}, names=("A",))
    assert secrets.get("A") is None
    assert secrets.names() == []


def test_what_one_process_keeps_another_finds(folder):
    secrets_of(folder).set("A", VALUE)
    assert reveal(secrets_of(folder), "A") == VALUE


def test_a_secret_that_another_process_changes_or_removes_counts_at_once(folder):
    mine, theirs = secrets_of(folder), secrets_of(folder)
    for number in range(5):
        theirs.set("A", f"value {number}")
        assert reveal(mine, "A") == f"value {number}"
    assert theirs.remove("A")
    assert mine.get("A") is None
    assert not mine.remove("A")


def test_the_disk_holds_no_secret_in_any_spelling_and_is_for_the_owner_alone(folder):
    before = os.umask(0)
    try:
        secrets_of(folder).set("A", VALUE)
    finally:
        os.umask(before)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.name for path in files if path.parent == folder} == {"secrets.json", "secrets.key"}
    raw = VALUE.encode()
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not any(spelling in path.read_bytes() for spelling in (raw, base64.b64encode(raw), raw.hex().encode()))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_same_value_is_sealed_differently_each_time(folder):
    secrets, seen = secrets_of(folder), set()
    for name in ("A", "B", "A", "A"):
        secrets.set(name, VALUE)
        seen.add(document_of(folder)["secrets"][name])
    assert len(seen) == 4
    assert len({base64.b64decode(sealed)[:12] for sealed in seen}) == 4


def test_without_a_project_secrets_last_as_long_as_the_process():
    secrets = secrets_of()
    secrets.set("A", VALUE)
    assert reveal(secrets, "A") == VALUE
    assert secrets.places() == {"A": "this process"}
    assert secrets.remove("A")
    assert not secrets.remove("A")
    assert secrets.get("A") is None


@pytest.mark.parametrize("name", ["", "1A", "a-b", "a b", "A=b", "Ä", "A\n", "A" * 65, "a/b", "../x", "\0", "A\ud800"])
def test_what_is_no_name_is_refused_without_being_quoted(folder, name):
    secrets = secrets_of(folder)
    assert secrets.get(name) is None
    for change in (lambda: secrets.set(name, VALUE), lambda: secrets.remove(name)):
        with pytest.raises(ToolError, match="this cannot be the name of a secret; write letters") as refused:
            change()
        assert not name or name not in refused.value.message.replace("a digit", "")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("value", "cure"),
    [
        ("", "there is nothing in it"),
        ("a\0b", "it holds a NUL"),
        ("a\ud800b", "it is not UTF-8"),
        ("ü" * (MAX_BYTES // 2) + "x", "64000 are the most"),
    ],
)
def test_what_cannot_be_a_secret_is_refused_without_being_quoted(folder, value, cure):
    with pytest.raises(ToolError, match=cure) as refused:
        secrets_of(folder).set("KEY", value)
    assert refused.value.message.startswith("secret KEY: ")
    assert not value or value not in refused.value.message


def test_the_longest_secret_is_kept_whole(folder):
    secrets_of(folder).set("A", "x" * MAX_BYTES)
    assert reveal(secrets_of(folder), "A") == "x" * MAX_BYTES


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=200))
def test_any_text_comes_back_as_it_was(folder, value):
    secrets_of(folder).set("A", value)
    assert reveal(secrets_of(folder), "A") == value


def test_sealed_secrets_cannot_be_swapped(folder):
    secrets = secrets_of(folder)
    secrets.set("PUBLIC", "harmless")
    secrets.set("PRIVATE", VALUE)
    document = document_of(folder)
    kept = document["secrets"]
    kept["PUBLIC"], kept["PRIVATE"] = kept["PRIVATE"], kept["PUBLIC"]
    write_document(folder, document)
    for name in kept:
        with pytest.raises(SettingsError, match=f"secret {name} was changed, .* crib secret set {name}"):
            secrets_of(folder).get(name)


@pytest.mark.parametrize("change", ["flip", "cut", "empty", "no base64", "number", "longer"])
def test_a_sealed_secret_that_was_changed_is_refused_by_name_and_others_are_not(folder, change):
    secrets = secrets_of(folder)
    secrets.set("A", VALUE)
    secrets.set("B", "another one")
    document = document_of(folder)
    raw = base64.b64decode(document["secrets"]["A"])
    document["secrets"]["A"] = {
        "flip": base64.b64encode(raw[:-1] + bytes([raw[-1] ^ 1])).decode(),
        "cut": base64.b64encode(raw[:20]).decode(),
        "empty": "",
        "no base64": "§§§",
        "number": 5,
        "longer": base64.b64encode(raw + b"x").decode(),
    }[change]
    write_document(folder, document)
    with pytest.raises(SettingsError, match="secret A was changed, or sealed with another key; set it again with"):
        secrets.get("A")
    with pytest.raises(SettingsError, match="secret A was changed"):
        secrets.check()
    assert reveal(secrets, "B") == "another one"
    secrets.set("A", "new")
    secrets.check()
    assert reveal(secrets, "A") == "new"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"layout": "toolcrib secrets 2", "secrets": {}}', '{"secrets": {"A": "x"}}']
)
def test_a_file_that_is_none_of_ours_is_refused_and_left_as_it_is(folder, text):
    secrets = secrets_of(folder)
    secrets.set("A", VALUE)
    (folder / "secrets.json").write_text(text)
    for work in (lambda: secrets.get("A"), secrets.names, lambda: secrets.set("A", "x"), secrets.check):
        with pytest.raises(SettingsError, match=r"secrets\.json is not a file of secrets of ours; put back"):
            work()
    assert (folder / "secrets.json").read_text() == text


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_plain_file_is_no_file_of_secrets(folder, tmp_path, kind):
    secrets = secrets_of(folder)
    secrets.set("A", VALUE)
    path = folder / "secrets.json"
    path.rename(tmp_path / "elsewhere")
    {"link": lambda: path.symlink_to(tmp_path / "elsewhere"), "pipe": lambda: os.mkfifo(path), "folder": path.mkdir}[
        kind
    ]()
    with pytest.raises(ToolError):
        secrets.get("A")


def test_secrets_whose_key_is_lost_are_refused_and_no_other_key_is_made(folder):
    secrets_of(folder).set("A", VALUE)
    (folder / "secrets.key").unlink()
    secrets = secrets_of(folder)
    for work in (secrets.check, lambda: secrets.get("A"), lambda: secrets.set("B", "x")):
        with pytest.raises(SettingsError, match=r"the key of the secrets is not there; put back the secrets\.key"):
            work()
    assert not (folder / "secrets.key").exists()
    assert secrets.names() == ["A"]


def test_without_secrets_no_key_is_needed(folder):
    secrets = secrets_of(folder)
    secrets.check()
    assert secrets.names() == []
    assert secrets.get("A") is None
    assert not folder.exists()


def test_a_key_that_others_can_read_is_refused_with_a_cure_that_loses_nothing(folder):
    secrets_of(folder).set("A", VALUE)
    (folder / "secrets.key").chmod(0o644)
    with pytest.raises(SettingsError, match=r"others can read the key; put back the secrets\.key .* chmod 600"):
        secrets_of(folder).get("A")


def test_processes_and_threads_that_write_at_once_lose_nothing(folder):
    program = (
        "import sys, pathlib\nfrom toolcrib.infra.secrets.lookup import Secrets\n"
        "secrets = Secrets(pathlib.Path(sys.argv[1]), environment={})\nprint('ready', flush=True)\nsys.stdin.readline()\n"
        "for number in range(5): secrets.set(f'P{sys.argv[2]}_{number}', f'value {number}')"
    )
    processes = [
        WarmPython(
            [sys.executable, "-c", program, str(folder), str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for number in range(3)
    ]
    mine = secrets_of(folder)
    threads = [threading.Thread(target=mine.set, args=(f"T{number}", f"value {number}")) for number in range(5)]
    try:
        for process in processes:
            assert process.stdout.readline() == b"ready\n"
        for process in processes:
            process.stdin.write(b"\n")
            process.stdin.flush()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        for process in processes:
            process.communicate(timeout=20)
            assert process.returncode == 0
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    names = [f"P{process}_{number}" for process in range(3) for number in range(5)] + [
        f"T{number}" for number in range(5)
    ]
    assert mine.names() == sorted(names)
    assert all(reveal(mine, name) == f"value {name[-1]}" for name in names)


def test_a_file_holds_one_secret_in_each_line(listed):
    text = '# comment = no secret\n\nA=plain\nB=with = and # and "quotes" \r\nC= space at the beginning\n_d1=ü\n'
    secrets = secrets_of(file=listed("\ufeff" + text))
    assert secrets.names() == ["A", "B", "C", "_d1"]
    assert [reveal(secrets, name) for name in secrets.names()] == [
        *("plain", 'with = and # and "quotes" ', " space at the beginning", "ü")
    ]


def test_a_file_is_read_again_when_it_has_changed(listed):
    secrets = secrets_of(file=listed("A=first\n"))
    assert reveal(secrets, "A") == "first"
    for number in range(20):
        # As long as before, and sooner than the disk's clock ticks.
        listed(f"A=ver{number:02}\n")
        assert reveal(secrets, "A") == f"ver{number:02}"


def test_a_change_that_a_slow_clock_does_not_show_is_seen_all_the_same(folder, listed, monkeypatch):
    for place in (lookup, stamps_module):
        monkeypatch.setattr(place, "stamp_of", lambda status: (1,))
    # However busy the machine is, the second change comes before the clock ticks.
    monkeypatch.setattr(stamps_module, "RACY_NANOSECONDS", 60_000_000_000)
    secrets, other = secrets_of(folder, file=listed("A=first\n")), secrets_of(folder)
    other.set("B", "first")
    assert (reveal(secrets, "A"), reveal(secrets, "B")) == ("first", "first")
    listed("A=later\n")
    other.set("B", "later")
    assert (reveal(secrets, "A"), reveal(secrets, "B")) == ("later", "later")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o601])
def test_a_file_that_others_can_read_is_refused_with_the_cure(listed, mode):
    secrets = secrets_of(file=listed(f"A={VALUE}\n"))
    assert reveal(secrets, "A") == VALUE
    listed(f"A={VALUE}\n", mode)
    for work in (lambda: secrets.get("A"), secrets.names, secrets.check):
        with pytest.raises(SettingsError, match="others can read these secrets; run chmod 600") as refused:
            work()
        assert VALUE not in refused.value.message


def test_a_file_of_another_user_is_refused(listed, monkeypatch):
    secrets = secrets_of(file=listed("A=b\n"))
    monkeypatch.setattr(os, "geteuid", lambda: 4_242_424)
    with pytest.raises(SettingsError, match="belongs to another user; make it yours, with chown"):
        secrets.get("A")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("A=b\nhunter2hunter2\n", "line 2: write NAME=value"),
        ("A b=hunter2\n", "line 1: write NAME=value"),
        ("A =hunter2\n", "line 1: write NAME=value"),
        (" A=hunter2\n", "line 1: write NAME=value"),
        ("export A=hunter2\n", "line 1: write NAME=value"),
        ("=hunter2\n", "line 1: write NAME=value"),
        ("A=x\nA=hunter2\n", "line 2: A is there twice; remove one of them"),
        (b"A=hunter2\xff\n", "not UTF-8 at byte 9; save it as UTF-8"),
        ("#" * 1_000_001 + "hunter2", "at most 1000000 bytes"),
        ("A=hunter2\0\n", "secret A: it holds a NUL"),
        ("A=\n", "secret A: there is nothing in it"),
    ],
)
def test_a_line_that_cannot_be_understood_is_named_by_its_number_and_never_quoted(listed, text, complaint):
    secrets = secrets_of(file=listed(text))
    with pytest.raises(ToolError, match=complaint) as refused:
        secrets.get("A")
    assert "hunter2" not in refused.value.message
    assert "hunter2" not in repr(refused.value.__cause__)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "link"])
def test_what_is_no_file_of_secrets_is_refused_and_never_waited_for(tmp_path, kind):
    path = tmp_path / "secrets.env"
    if kind == "folder":
        path.mkdir(0o700)
    elif kind == "pipe":
        os.mkfifo(path, 0o600)
    elif kind == "link":
        (tmp_path / "real").write_text("A=b\n")
        path.symlink_to(tmp_path / "real")
    with pytest.raises(SettingsError, match=r"secrets.file"):
        secrets_of(file=path).get("A")


def test_a_secret_is_hidden_from_when_it_is_stored(folder):
    secrets = secrets_of(folder, {"E": "environment-secret"}, names=("E",))
    text = "environment-secret project-secret"
    assert secrets.hide(text) == f"{MASK} project-secret"
    secrets.set("P", "project-secret")
    assert secrets.hide(text) == f"{MASK} {MASK}"


class FakeKeyring:
    """A keyring that notes what it is asked."""

    def __init__(self):
        self.asked = []

    def get_password(self, service, name):
        self.asked.append((service, name))
        return {"A": VALUE}.get(name)


def test_a_keyring_is_asked_last_and_not_again_for_a_while(monkeypatch):
    import keyring

    ring = FakeKeyring()
    monkeypatch.setattr(keyring, "get_password", ring.get_password)
    secrets = secrets_of(environment={"B": "b"}, names=("B",), keyring="crib")
    for _ in range(3):
        assert [reveal(secrets, name) for name in ("A", "B", "C")] == [VALUE, "b", None]
    assert ring.asked == [("crib", "A"), ("crib", "C")]
    assert secrets.names() == ["B"]


def test_a_keyring_is_asked_again_when_its_answer_has_grown_old(monkeypatch):
    import keyring

    ring, now = FakeKeyring(), [0.0]
    monkeypatch.setattr(keyring, "get_password", ring.get_password)
    asked = lookup.AskedSecrets("crib", clock=lambda: now[0])
    for moment in (0.0, lookup.KEPT_SECONDS - 1, lookup.KEPT_SECONDS + 1):
        now[0] = moment
        assert asked.get("A") == VALUE
    assert len(ring.asked) == 2


def test_a_system_without_a_keyring_is_told_with_the_cure(monkeypatch):
    import keyring
    from keyring.backends import fail

    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())
    try:
        with pytest.raises(SettingsError, match="no keyring that could be asked for A; remove secrets.keyring"):
            secrets_of(keyring="crib").get("A")
    finally:
        keyring.set_keyring(before)


def test_a_keyring_that_is_locked_is_told_without_what_it_said(monkeypatch):
    import keyring
    from keyring.errors import KeyringLocked

    def refuse(service, name):
        raise KeyringLocked("hunter2")

    monkeypatch.setattr(keyring, "get_password", refuse)
    with pytest.raises(SettingsError, match="the keyring did not hand out A: KeyringLocked; unlock it") as refused:
        secrets_of(keyring="crib").get("A")
    assert "hunter2" not in refused.value.message


def test_a_keyring_without_its_package_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(SettingsError, match=r"pip install 'toolcrib\[keyring\]'"):
        secrets_of(keyring="crib").get("A")


def test_every_stored_secret_is_hidden_before_it_is_handed_out(folder, listed):
    secrets_of(folder).set("KEPT", "of the project")
    file = listed("LISTED=of the file\n")
    fresh = secrets_of(folder, {"GIVEN": "of the environment"}, names=("GIVEN",), file=file)
    assert fresh.hide("of the project, of the file, of the environment, of nobody") == "***, ***, ***, of nobody"


def test_a_secret_that_another_process_stores_is_hidden_from_then_on(folder, listed):
    file = listed("")
    running = secrets_of(folder, file=file)
    assert running.hide("of the project, of the file") == "of the project, of the file"
    secrets_of(folder).set("KEPT", "of the project")
    listed("LISTED=of the file\n")
    assert running.hide("of the project, of the file") == "***, ***"


def test_a_secret_that_cannot_be_opened_keeps_nothing_else_from_being_hidden(folder):
    secrets_of(folder).set("KEPT", "of the project")
    (folder / "secrets.key").write_bytes(bytes(32))
    (folder / "secrets.key").chmod(0o600)
    fresh = secrets_of(folder, {"GIVEN": "of the environment"}, names=("GIVEN",))
    assert fresh.hide("of the project, of the environment") == "of the project, ***"


def test_a_file_of_secrets_that_is_refused_keeps_nothing_else_from_being_hidden(folder, listed):
    secrets_of(folder).set("KEPT", "of the project")
    fresh = secrets_of(folder, {"GIVEN": "of the environment"}, names=("GIVEN",), file=listed("A=b\n", mode=0o644))
    assert fresh.hide("of the project, of the environment") == "***, ***"


def test_a_stored_secret_is_hidden_where_another_of_its_name_counts_before_it(folder):
    secrets_of(folder).set("KEY", "of the project")
    fresh = secrets_of(folder, {"KEY": "of the environment"}, names=("KEY",))
    assert fresh.hide("of the project, of the environment") == "***, ***"


@pytest.mark.parametrize("in_memory", [True, False], ids=["of a process", "of a project"])
def test_of_many_secrets_every_one_is_hidden(folder, monkeypatch, in_memory):
    monkeypatch.setattr("toolcrib.infra.secrets.secret.MAX_VALUES", 2)
    secrets = secrets_of(None if in_memory else folder)
    for name in "ABCD":
        secrets.set(name, f"the {name} of all")
    assert secrets.hide("the A of all, the B of all, the C of all, the D of all") == "***, ***, ***, ***"
