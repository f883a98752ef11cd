"""System calls that wait for the supervisor's answer, and what they tell about a process."""

import errno
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolcrib.infra.sandbox.child import notifications
from toolcrib.infra.sandbox.child.observer import MORE, Observer, observed_calls
from warm_python import WarmPython

if not notifications.is_available():
    pytest.skip("the kernel does not let a supervisor answer system calls", allow_module_level=True)

SECONDS = 20
STARTS = {notifications.pick(notifications.EXECVE), notifications.pick(notifications.EXECVEAT)}
TRUE = os.path.realpath("/bin/true")
INSTALL = """
import sys
from toolcrib.infra.sandbox import system
from toolcrib.infra.sandbox.child import notifications
calls, way_out = eval(sys.argv.pop(1)), int(sys.argv.pop(1))
system.prctl(system.NO_NEW_PRIVS, 1)
notifications.install(calls, way_out, sys.argv.pop(1).encode())
"""


def serve(listener, process):
    """Answer until no process is left that could ask; the output."""
    until = time.monotonic() + SECONDS
    while not listener.is_over:
        assert time.monotonic() < until, "the process did not end"
        poll = select.poll()
        poll.register(listener.fileno(), select.POLLIN)
        if poll.poll(1000):
            listener.serve()
    output, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    return output


def run(listener, calls, code, *, words="hello", cwd=None):
    """Run code in a Python whose calls wait for an answer; what it printed."""
    listener.connect()
    # The descriptor that a warm Python gets beside its output is its input.
    command = ["-c", INSTALL + code, repr(set(calls)), "0", words]
    process = WarmPython(
        command, stdin=listener.theirs, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    listener.begin()
    try:
        return serve(listener, process)
    finally:
        listener.close()
        process.kill()
        process.wait()


def run_limited(starts, code):
    """Run code that may start programs so many times; what it printed."""
    return run(notifications.NotificationListener(lambda _: notifications.Starts(starts)), STARTS, code)


@pytest.fixture
def world(tmp_path):
    """A folder that may be read, one that may be written, and one that is neither."""
    for name in ("open", "writable", "outside", "scratch"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    return tmp_path.resolve()


@pytest.fixture
def observe(world):
    """Run code under observation; its effects in the world, with paths seen from there."""

    def run_observed(code, *, policy=(), is_program=False, mounts=True):
        policy = {
            "read": [str(world / "open")],
            "write": [str(world / "writable")],
            "closed": [],
            "fixed": [],
            "programs": False,
            "network": False,
            **dict(policy),
        }
        observer = Observer(policy, is_program=is_program)
        words = json.dumps({"own": str(world / "scratch"), "mounts": mounts})
        run(observer.notifications, observed_calls(), code, words=words, cwd=world)
        effects = {(act, what.removeprefix(f"{world}/"), denied) for act, what, denied in observer.report()}
        # What the interpreter reads to work at all lies outside of the world.
        return {effect for effect in effects if effect[0] != "read" or not effect[1].startswith("/")}

    return run_observed


def attempt(action):
    """Code that does something which may be refused."""
    return f"\nimport os\ntry:\n    {action}\nexcept OSError:\n    pass\n"


def test_a_program_may_be_started_once_and_not_again():
    code = "import os; os.execve('/bin/sh', ['sh', '-c', 'echo started; /bin/echo again; exit 0'], {})"
    assert run_limited(1, code) == "started\n"


def test_what_is_refused_fails_as_not_permitted():
    code = """
import os
for start in (lambda: os.execv("/bin/true", ["true"]), lambda: os.execve(os.open("/bin/true", os.O_RDONLY), ["true"], {})):
    try:
        start()
    except OSError as problem:
        print(problem.errno)
"""
    assert run_limited(0, code) == f"{errno.EPERM}\n{errno.EPERM}\n"


def test_without_end_programs_may_be_started_again_and_again():
    code = "import os; os.execv('/bin/sh', ['sh', '-c', '/bin/echo one; /bin/echo two'])"
    assert run_limited(None, code) == "one\ntwo\n"


def test_children_cannot_start_what_their_parent_may_not():
    code = """
import os
os.execv("/bin/sh", ["sh", "-c", "(/bin/echo child; (/bin/echo grandchild) & wait) & wait; echo done"])
"""
    assert run_limited(1, code) == "done\n"


def test_without_a_supervisor_no_program_is_started():
    listener = notifications.NotificationListener(lambda _: notifications.Starts(None))
    listener.connect()
    notify_socket = listener.theirs.fileno()
    code = """
import os
sys.stdin.read()
try:
    os.execv("/bin/echo", ["echo", "started"])
except OSError as problem:
    print(problem.errno)
"""
    command = [sys.executable, "-P", "-c", INSTALL + code, repr(STARTS), str(notify_socket), "hello"]
    process = subprocess.Popen(
        command, pass_fds=[notify_socket], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    listener.begin()
    listener.serve()
    listener.close()
    assert process.communicate("go", timeout=SECONDS)[0] == f"{errno.ENOSYS}\n"


def test_a_worker_that_never_asks_ends_the_oversight():
    listener = notifications.NotificationListener(lambda _: notifications.Starts(1))
    listener.begin()
    listener.serve()
    assert listener.is_over


def test_the_way_out_is_closed_to_the_job(observe, world):
    code = """
import os, socket
left, right = socket.socketpair()
os.dup2(left.fileno(), 900)
try:
    socket.socket(fileno=900).sendmsg([b"x"])
except OSError as problem:
    assert problem.errno == 9, problem
else:
    raise SystemExit("it was sent unseen")
right.sendmsg([b"x"])
"""
    assert observe(code) == set()


def test_nothing_done_is_nothing_seen(observe):
    assert observe("") == set()


@pytest.mark.parametrize(
    ("action", "effects"),
    [
        ("open('open/file').read()", {("read", "open/file", False)}),
        ("os.listdir('open')", {("read", "open", False)}),
        ("open('outside/file').read()", {("read", "outside/file", True)}),
        ("open('writable/file').read()", {("read", "writable/file", True)}),
        ("open('writable/new', 'w')", {("write", "writable/new", False)}),
        ("open('open/file', 'a')", {("write", "open/file", True)}),
        ("open('writable/file', 'r+')", {("read", "writable/file", True), ("write", "writable/file", False)}),
        (
            "os.open('open/file', os.O_RDONLY | os.O_TRUNC)",
            {("read", "open/file", False), ("write", "open/file", True)},
        ),
        ("os.truncate('writable/file', 0)", {("write", "writable/file", False)}),
        ("os.mkdir('outside/new')", {("write", "outside/new", True)}),
        ("os.unlink('outside/file')", {("write", "outside/file", True)}),
        ("os.rmdir('outside/file')", {("write", "outside/file", True)}),
        ("os.rename('writable/file', 'outside/x')", {("write", "writable/file", False), ("write", "outside/x", True)}),
        ("os.link('open/file', 'writable/x')", {("write", "open/file", True), ("write", "writable/x", False)}),
        ("os.symlink('anything', 'writable/link')", {("write", "writable/link", False)}),
        ("os.chmod('open/file', 0o600)", {("write", "open/file", True)}),
        ("os.utime('open/file')", {("write", "open/file", True)}),
        ("os.setxattr('open/file', 'user.x', b'')", {("write", "open/file", True)}),
        ("os.mkfifo('writable/pipe')", {("write", "writable/pipe", False)}),
        ("os.open('open/file', os.O_PATH)", set()),
        ("open('scratch/file').read()", set()),
        ("open('scratch/new', 'w')", set()),
        ("open('/proc/self/status').read()", set()),
        ("open(f'/proc/{os.getpid()}/status').read()", set()),
        ("open('/dev/null', 'w')", set()),
        ("open('/dev/stdout', 'w')", set()),
        ("open('/proc/self/cwd/outside/file')", {("read", "outside/file", True)}),
        ("open('/proc/self/root' + os.path.abspath('outside/file'))", {("read", "outside/file", True)}),
        ("open('open/../outside/./file')", {("read", "outside/file", True)}),
        ("os.chdir('outside'); open('file')", {("read", "outside/file", True)}),
    ],
)
def test_what_is_done_to_files_is_seen(observe, action, effects):
    assert observe(attempt(action)) == effects


def test_a_folder_given_by_descriptor_is_where_the_path_begins(observe):
    code = attempt("folder = os.open('outside', os.O_PATH); os.open('file', os.O_RDONLY, dir_fd=folder)")
    assert observe(code) == {("read", "outside/file", True)}


def test_a_change_by_descriptor_is_a_change_of_its_file(observe):
    code = attempt("file = os.open('open/file', os.O_RDONLY); os.fchmod(file, 0o600)")
    assert observe(code) == {("read", "open/file", False), ("write", "open/file", True)}


def test_a_link_is_told_by_where_it_leads(observe, world):
    (world / "scratch" / "link").symlink_to(world / "outside" / "file")
    (world / "open" / "folder").symlink_to("../outside")
    code = attempt("open('scratch/link'); open('open/folder/file')")
    assert observe(code) == {("read", "outside/file", True)}


def test_a_link_that_is_removed_is_told_by_itself(observe, world):
    (world / "writable" / "link").symlink_to(world / "outside" / "file")
    code = attempt("os.unlink('writable/link')")
    assert observe(code) == {("write", "writable/link", False)}


def test_a_link_on_the_way_is_followed_even_if_one_at_the_end_is_not(observe, world):
    (world / "writable" / "folder").symlink_to("../outside")
    assert observe(attempt("os.unlink('writable/folder/file')")) == {("write", "outside/file", True)}


def test_links_in_a_circle_count_as_unreadable(observe, world):
    (world / "open" / "one").symlink_to("two")
    (world / "open" / "two").symlink_to("one")
    assert observe(attempt("open('open/one')")) == {("read", "(it could not be read)", True)}


def test_a_path_that_is_not_there_in_memory_counts_as_unreadable(observe):
    code = "import ctypes\nctypes.CDLL(None).open(ctypes.c_void_p(1), 0)\n"
    assert observe(code) == {("read", "(it could not be read)", True)}


def test_what_is_closed_and_what_is_fixed_is_denied(observe, world):
    (world / "writable" / "fixed").write_text("")
    policy = {"closed": [str(world / "open" / "file")], "fixed": [str(world / "writable" / "fixed")]}
    code = attempt("open('open/file')") + attempt("open('writable/fixed', 'w')")
    assert observe(code, policy=policy) == {("read", "open/file", True), ("write", "writable/fixed", True)}


def test_a_name_beside_an_open_folder_is_not_in_it(observe, world):
    (world / "open-too").write_text("")
    assert observe(attempt("open('open-too')")) == {("read", "open-too", True)}


def test_a_start_that_is_not_allowed_is_seen_and_refused(observe):
    code = attempt("os.execv('/bin/true', ['true'])")
    assert observe(code) == {("start", TRUE, True)}


def test_a_start_that_is_allowed_is_seen(observe):
    policy = {"programs": True, "read": ["/bin"]}
    assert observe("import os; os.execv('/bin/true', ['true'])", policy=policy) == {("start", TRUE, False)}


def test_a_program_outside_of_what_may_be_read_is_a_denied_start(observe):
    assert observe("import os; os.execv('/bin/true', ['true'])", policy={"programs": True}) == {("start", TRUE, True)}


def test_the_start_that_the_job_begins_with_is_no_effect(observe):
    code = "import os; os.execv('/bin/sh', ['sh', '-c', '/bin/true; exit 0'])"
    assert observe(code, is_program=True) == {("start", TRUE, True)}


def test_a_program_in_memory_is_a_start_too(observe):
    code = attempt("file = os.memfd_create('hidden'); os.write(file, b'#!'); os.execve(file, ['hidden'], {})")
    assert observe(code) == {("start", "/memfd:hidden (deleted)", True)}


@pytest.mark.parametrize(
    ("action", "effects"),
    [
        ("socket.socket()", {("connect", "inet", True)}),
        ("socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)", {("connect", "inet6", True)}),
        ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", {("connect", "netlink", True)}),
        ("socket.socket(socket.AF_UNIX)", set()),
        ("socket.socket(socket.AF_UNIX).connect('/run/x')", {("connect", "unix:/run/x", True)}),
        ("socket.socket(socket.AF_UNIX).connect(b'\\0x')", {("connect", "unix:@x", True)}),
        ("socket.socketpair()[0].sendmsg([b'x'])", set()),
    ],
)
def test_a_way_out_of_the_walls_is_seen_and_denied(observe, action, effects):
    assert observe(attempt(f"import socket; {action}")) == effects


@pytest.mark.parametrize(
    ("action", "what", "denied"),
    [
        ("connection.connect(('127.0.0.1', 1))", "127.0.0.1:1", False),
        ("connection.connect(('192.0.2.1', 80))", "192.0.2.1:80", True),
        ("connection.bind(('127.0.0.1', 0))", "127.0.0.1:0", False),
        ("connection.sendto(b'x', ('192.0.2.2', 53))", "192.0.2.2:53", True),
        ("connection.sendmsg([b'x'], (), 0, ('192.0.2.3', 53))", "192.0.2.3:53", True),
    ],
)
def test_with_a_network_of_its_own_addresses_are_seen(observe, action, what, denied):
    # Without blocking and without a route: nothing leaves this machine.
    code = attempt(f"import socket; connection = socket.socket(); connection.setblocking(False); {action}")
    assert observe(code, policy={"network": True}) == {("connect", "inet", False), ("connect", what, denied)}


def test_a_network_has_connections_and_nothing_else(observe):
    code = attempt("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)") + attempt(
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"
    )
    effects = observe(code, policy={"network": True})
    assert effects == {("connect", "inet", True), ("connect", "netlink", True)}


def test_a_socket_that_can_be_sent_from_unconnected_is_refused(observe):
    code = """
import errno, socket
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    try:
        socket.socket(socket.AF_UNIX, kind)
    except OSError as problem:
        assert problem.errno == errno.EPERM, problem
    else:
        raise SystemExit("it could be sent from")
"""
    assert observe(code) == set()


def test_without_mounts_files_keep_their_modes_and_owners(observe, world):
    before = (world / "writable" / "file").stat().st_mode
    code = attempt("os.chmod('writable/file', 0o700)")
    assert observe(code, mounts=False) == {("write", "writable/file", True)}
    assert (world / "writable" / "file").stat().st_mode == before
    observe(code)
    assert (world / "writable" / "file").stat().st_mode & 0o777 == 0o700


def test_an_address_of_the_sixth_version_is_seen(observe):
    action = (
        "connection = socket.socket(socket.AF_INET6); connection.setblocking(False); connection.connect(('::1', 1))"
    )
    effects = observe(attempt(f"import socket; {action}"), policy={"network": True})
    assert effects == {("connect", "inet6", False), ("connect", "[::1]:1", False)}


def test_many_messages_at_once_are_all_seen(observe):
    code = """
import ctypes, socket, struct
connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
kept = []
def message(host):
    name = ctypes.create_string_buffer(struct.pack("=H", 2) + struct.pack("!H", 53) + socket.inet_aton(host) + bytes(8))
    kept.append(name)
    return struct.pack("@PIxxxxPNPNixxxxIxxxx", ctypes.addressof(name), 16, 0, 0, 0, 0, 0, 0)
both = message("192.0.2.4") + message("192.0.2.5")
ctypes.CDLL(None).sendmmsg(connection.fileno(), both, 2, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
"""
    seen = {what for _, what, _ in observe(code, policy={"network": True})}
    assert seen == {"inet", "192.0.2.4:53", "192.0.2.5:53"}


def test_the_same_effect_is_told_once(observe):
    assert observe(attempt("[open('open/file').close() for _ in range(50)]")) == {("read", "open/file", False)}


def test_a_name_that_is_no_text_is_told_as_one(observe, world):
    Path(os.fsdecode(os.fsencode(world / "outside") + b"/\xff")).write_text("")
    assert observe(attempt("open(b'outside/\\xff')")) == {("read", "outside/\ufffd", True)}


def test_more_than_can_be_told_is_told_as_such(observe, monkeypatch):
    monkeypatch.setattr("toolcrib.infra.sandbox.child.observer.MAX_EFFECTS", 20)
    code = "import os\nfor number in range(40):\n" + attempt("open(f'open/{number}')").replace("\n", "\n    ")
    effects = observe(code)
    assert (MORE, "", False) in effects
    assert len(effects) <= 21


def test_long_names_take_their_share_of_the_room(observe, monkeypatch):
    monkeypatch.setattr("toolcrib.infra.sandbox.child.observer.MAX_CHARACTERS", 2000)
    code = "import os\nfor number in range(20):\n" + attempt("open(f'{number}' * 100)").replace("\n", "\n    ")
    effects = observe(code)
    assert (MORE, "", False) in effects
    assert sum(len(what) for _, what, _ in effects) < 2000
