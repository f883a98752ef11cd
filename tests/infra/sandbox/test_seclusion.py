"""What a job is kept from beside files: the network, other processes, privileges, programs."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from toolcrib.infra.sandbox.jobs import PROXY_HOST, PROXY_PORT, Program, PythonFile

REFUSED = {"EACCES", "EPERM", "EROFS"}
LIBC = "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"


def call_of(number, *arguments):
    """An act that makes a system call; one that returns anything but -1 got through."""
    words = ", ".join(f"ctypes.c_long({argument})" for argument in arguments)
    return (
        f"{LIBC}result = libc.syscall({', '.join(filter(None, (str(number), words)))})\n"
        "if result == -1: raise OSError(ctypes.get_errno(), '')"
    )


LONGEST_NAME_OF_A_SOCKET = 107


@pytest.fixture
def listeners(tmp_path):
    """What listens on the host: TCP, UDP, a socket with a path and one with an abstract name."""
    with contextlib.ExitStack() as opened:
        listening = {
            "tcp": opened.enter_context(socket.create_server(("127.0.0.1", 0))),
            "udp": opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)),
            "path": opened.enter_context(socket.socket(socket.AF_UNIX)),
            "abstract": opened.enter_context(socket.socket(socket.AF_UNIX)),
        }
        listening["udp"].bind(("127.0.0.1", 0))
        place = str(tmp_path / "tool" / "socket")
        if len(place) > LONGEST_NAME_OF_A_SOCKET:
            pytest.skip("the temporary folder has too long a path for a socket in it")
        listening["path"].bind(place)
        listening["abstract"].bind(f"\0toolcrib-test-{os.getpid()}")
        for kind in ("path", "abstract"):
            listening[kind].listen()
        for listener in listening.values():
            listener.settimeout(0)
        yield listening


CONNECTIONS = [
    "socket.create_connection(('127.0.0.1', int(tcp)), 2)",
    "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', int(udp)))",
    "socket.socket(socket.AF_UNIX).connect(path)",
    "socket.socket(socket.AF_UNIX).connect('\\0' + abstract)",
    "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "socket.socket(40, socket.SOCK_STREAM)",  # to the machine's host
    "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)",  # another protocol than TCP
    "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "socket.getaddrinfo('localhost.example', 80)",
]


async def test_without_a_network_nothing_is_reached(attempt, confine, listeners):
    names = {
        "tcp": listeners["tcp"].getsockname()[1],
        "udp": listeners["udp"].getsockname()[1],
        "path": listeners["path"].getsockname(),
        "abstract": listeners["abstract"].getsockname()[1:].decode(),
    }
    for policy in (confine("fs.read", "fs.write"), confine("shell.execute")):
        outcomes = await attempt(CONNECTIONS, policy, **names)
        assert set(outcomes[:-1]) <= REFUSED
        assert outcomes[-1] != "done"
    for listener in listeners.values():
        with pytest.raises(BlockingIOError):
            listener.accept() if listener.type == socket.SOCK_STREAM else listener.recv(1)


async def test_with_a_network_the_hosts_own_listeners_are_still_not_reached(attempt, confine, listeners):
    names = {
        "tcp": listeners["tcp"].getsockname()[1],
        "udp": listeners["udp"].getsockname()[1],
        "path": listeners["path"].getsockname(),
        "abstract": listeners["abstract"].getsockname()[1:].decode(),
    }
    outcomes = await attempt(CONNECTIONS, confine("net.http"), **names)
    assert outcomes[0] == "ECONNREFUSED"
    assert set(outcomes[1:-1]) <= REFUSED
    assert outcomes[-1] != "done"
    assert await attempt(["socket.create_connection(('192.0.2.1', 80), 2)"], confine("net.http")) == ["ENETUNREACH"]


async def test_what_asyncio_needs_is_there_without_a_network(attempt, confine):
    acts = ["import asyncio\nasync def f(): await asyncio.sleep(0)\nasyncio.run(f())", "socket.socketpair()"]
    assert await attempt(acts, confine()) == ["done", "done"]


async def test_the_one_way_out_is_answered_by_the_host(sandbox, confine, tmp_path):
    heard = []

    @contextlib.asynccontextmanager
    async def proxy(listener):
        async def answer(reader, writer):
            heard.append(await reader.readline())
            writer.write(b"answered\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, sock=listener)
        async with server:
            yield

    code = (
        b"import socket\n"
        b"def main(host, port):\n"
        b"    with socket.create_connection((host, port), 10) as line:\n"
        b"        line.sendall(b'knock\\n')\n"
        b"        return line.makefile().readline()\n"
    )
    job = PythonFile(
        path=tmp_path / "tool" / "sample.py",
        code=code,
        entry="main",
        arguments={"host": PROXY_HOST, "port": PROXY_PORT},
        policy=confine("net.http"),
    )
    ended = await sandbox.run(job, deadline=time.monotonic() + 60, proxy=proxy)
    assert json.loads(ended.result) == {"value": "answered\n"}
    assert heard == [b"knock\n"]


async def test_other_processes_are_neither_seen_nor_touched(attempt, confine, sandbox):
    await attempt(["pass"], confine())
    bystander = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)  # noqa: ASYNC220 - it is ended below
    acts = [
        "os.kill(int(process), 0)",
        "os.kill(int(process), 15)",
        "os.killpg(int(process), 15)",
        "os.kill(-1, 15)",
        "import signal; signal.pidfd_send_signal(os.pidfd_open(int(process)), 15)",
        "open(f'/proc/{process}/environ').read()",
        "open(f'/proc/{process}/mem', 'rb').read(1)",
        "open(f'/proc/{process}/cmdline').read()",
        "os.listdir(f'/proc/{process}/fd')",
        "os.setpriority(os.PRIO_PROCESS, int(process), 19)",
        "os.setpriority(os.PRIO_USER, 0, 19)",
        "os.sched_setaffinity(int(process), {0})",
        "os.sched_setscheduler(int(process), os.SCHED_BATCH, os.sched_param(0))",
        "import resource; resource.prlimit(int(process), resource.RLIMIT_CPU, (1, 1))",
        call_of(310, "int(process)", 0, 0, 0, 0, 0),  # process_vm_readv
        call_of(101, 16, "int(process)", 0, 0),  # ptrace
        call_of(438, "os.pidfd_open(int(process))", 0, 0),  # pidfd_getfd
        call_of(251, 1, "int(process)", 0),  # ioprio_set
    ]
    try:
        for process in (bystander.pid, os.getpid(), sandbox._launcher.pid):
            outcomes = await attempt(acts, confine("shell.execute", "fs.read"), process=process)
            # Not everybody leads a group.
            assert set(outcomes) <= REFUSED | {"ESRCH"}, outcomes
            assert outcomes.count("ESRCH") <= 1
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait(10)
    assert await attempt(["os.kill(os.getppid(), 9)"], confine()) == ["EPERM"]


async def test_a_job_deals_with_its_own_processes_as_it_likes(attempt, confine):
    acts = [
        "child = os.fork()\nif child == 0: __import__('time').sleep(60)\nos.kill(child, 9); os.waitpid(child, 0)",
        "import threading; thread = threading.Thread(target=int); thread.start(); thread.join()",
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))",
        "os.setpriority(os.PRIO_PROCESS, 0, 19)",
        "os.sched_setaffinity(0, os.sched_getaffinity(0))",
        "import multiprocessing; multiprocessing.Lock().acquire()",
    ]
    assert await attempt(acts, confine()) == ["done"] * len(acts)


PRIVILEGES = {
    "a namespace for users": call_of(272, 0x10000000),
    "a namespace for mounts": call_of(272, 0x20000),
    "another's namespace": call_of(308, 0, 0),
    "a child in a namespace": call_of(56, 0x10000000 | 17, 0, 0, 0, 0),
    "a mount": call_of(165, 0, 0, 0, 0, 0),
    "a mount of the new kind": call_of(428, -100, 0, 1),
    "another root": call_of(161, 0),
    "io_uring": call_of(425, 1, 0),
    "bpf": call_of(321, 0, 0, 0),
    "keys": call_of(250, 0, -3, 0),
    "perf": call_of(298, 0, 0, -1, -1, 0),
    "page faults": call_of(323, 0),
    "files by handle": call_of(304, -100, 0, 0),
    "news of files": "import ctypes; " + call_of(254, 0, 0, 2),
    "shared memory of the machine": call_of(29, 0, 4096, 0o1600),
    "message queues": call_of(240, 0, 0),
    "modules": call_of(175, 0, 0, 0),
    "another kernel": call_of(246, 0, 0, 0, 0),
    "the clock": call_of(227, 0, 0),
    "the name of the machine": call_of(170, 0, 0),
    "another user": "os.setuid(12345)",
    "groups": "os.setgroups([1])",
    "a calls of the other numbering": call_of(0x40000000 + 39),
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of the calls are those of x86_64")
async def test_no_privilege_is_to_be_had(attempt, confine):
    for policy in (confine(), confine("shell.execute", "net.http")):
        outcomes = await attempt(list(PRIVILEGES.values()), policy)
        refused = dict(zip(PRIVILEGES, outcomes, strict=True))
        # In a user namespace there is no other user to become.
        assert refused.pop("another user") in {"EPERM", "EINVAL"}
        assert {name: outcome for name, outcome in refused.items() if outcome != "EPERM"} == {}
        # What programs ask for and can do without.
        assert await attempt([call_of(435, 0, 0), call_of(319, 0, 0), call_of(470)], policy) == ["ENOSYS"] * 3


SET_ID = {
    "chmod": "os.chmod(path, 0o4755)",
    "the group": "os.chmod(path, 0o2755)",
    "a descriptor": "os.fchmod(os.open(path, os.O_RDONLY), 0o4755)",
    "beneath a folder": "os.chmod('file', 0o4755, dir_fd=os.open(os.path.dirname(path), os.O_RDONLY))",
    "a new file": "os.open(path + '1', os.O_CREAT | os.O_WRONLY, 0o4755)",
    "a file without a name": "os.open(os.path.dirname(path), os.O_TMPFILE | os.O_RDWR, 0o4755)",
    "a node": "os.mknod(path + '2', 0o104755)",
    "a folder": "os.mkdir(path + '3', 0o6755)",
}


async def test_no_file_is_left_that_is_started_as_its_owner(attempt, confine, workspace):
    for observe in (False, True):
        policy = confine("fs.read", "fs.write", observe=observe)
        outcomes = await attempt(list(SET_ID.values()), policy, path=workspace / "file")
        assert dict(zip(SET_ID, outcomes, strict=True)) == dict.fromkeys(SET_ID, "EPERM")
    ordinary = [
        "os.chmod(path, 0o1755)",
        "os.open(path + '4', os.O_CREAT | os.O_WRONLY, 0o755)",
        "os.mkdir(path + '5')",
    ]
    assert await attempt(ordinary, confine("fs.read", "fs.write"), path=workspace / "file") == ["done"] * 3
    assert sorted(entry.name for entry in workspace.iterdir()) == ["file", "file4", "file5"]
    assert not any(entry.stat().st_mode & 0o6000 for entry in workspace.iterdir())


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of the calls are those of x86_64")
async def test_a_way_to_open_files_whose_mode_cannot_be_seen_is_disabled(attempt, confine):
    assert await attempt([call_of(437, -100, 0, 0, 24)], confine("fs.write")) == ["ENOSYS"]


async def test_programs_that_keep_modes_work(run_shell, tmp_path):
    command = (
        "mkdir -m 750 a && echo x > a/b && chmod 640 a/b && cp -Rp a c && tar cf d.tar a && mkdir e && tar xpf d.tar -C e"
        " && install -m 755 a/b f && stat -c '%a %n' a/b c c/b e/a/b f && ! chmod u+s f 2>/dev/null && ! chmod 6755 a"
    )
    ended = await run_shell(command)
    assert ended.exit_code == 0, ended.stderr
    assert ended.stdout.decode().splitlines() == ["640 a/b", "750 c", "640 c/b", "640 e/a/b", "755 f"]
    assert ended.stderr.count(b"not permitted") == 1


async def test_every_capability_of_root_is_gone(attempt, confine):
    act = (
        "status = open('/proc/self/status').read()\n"
        "found = {line.split()[0]: int(line.split()[1], 16) for line in status.splitlines() if line.startswith('Cap')}\n"
        "assert set(found.values()) == {0}, found\n"
        "assert 'NoNewPrivs:\\t1' in status and 'Seccomp:\\t2' in status, status"
    )
    assert await attempt([act], confine()) == ["done"]


STARTS = {
    "a program": "os.execv('/bin/true', ['true'])",
    "a program by descriptor": "os.execve(os.open('/bin/true', os.O_RDONLY), ['true'], {})",
    "a program by the loader": "os.execv('/lib64/ld-linux-x86-64.so.2', ['ld.so', '/bin/true'])",
    "a child": "import subprocess; subprocess.run(['/bin/true'], check=True)",
    "a child by posix_spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "the interpreter": "os.execv(sys.executable, ['python', '-c', ''])",
    "a shell": "assert os.system('true') == 0",
    "a file of its own": (
        "path = os.environ['TMPDIR'] + '/run'; import shutil; shutil.copy('/lib64/ld-linux-x86-64.so.2', path)\n"
        "os.chmod(path, 0o700); os.execv(path, [path])"
    ),
}


async def test_without_the_capability_no_program_is_started_in_any_way(attempt, confine):
    for policy in (confine(), confine("fs.read", "fs.write", "net.http")):
        outcomes = dict(zip(STARTS, await attempt(list(STARTS.values()), policy), strict=True))
        assert outcomes.pop("a shell") != "done"
        assert set(outcomes.values()) <= REFUSED, outcomes


async def test_with_the_capability_programs_are_started(attempt, confine):
    acts = [STARTS["a child"], STARTS["a child by posix_spawn"], STARTS["a shell"]]
    assert await attempt(acts, confine("shell.execute")) == ["done"] * 3


async def test_programs_are_started_out_of_what_may_be_read_alone(attempt, confine, tmp_path):
    program = tmp_path / "program"
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o755)
    act = "import subprocess; subprocess.run([path], check=True)"
    assert await attempt([act], confine("shell.execute"), path=program) == ["EACCES"]


ONCE = "/bin/true; /lib64/ld-linux-x86-64.so.2 /bin/true; exec /bin/sh -c true"


async def test_a_program_that_may_not_start_others_is_the_only_one(sandbox, confine, tmp_path):
    policy = confine(observe=False)
    policy = type(policy)(read=(*policy.read, Path("/usr"), Path("/bin")))
    job = Program(argv=("/bin/sh", "-c", f"echo begun; {ONCE}; echo ended"), cwd=tmp_path, policy=policy)
    ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    assert ended.stdout == b"begun\n"
    assert ended.stderr.count(b"not permitted") >= 2
    assert ended.exit_code == 126


async def test_a_program_gets_its_arguments_and_variables_whole(sandbox, confine, tmp_path):
    policy = type(confine())(read=(Path("/usr"), Path("/lib"), Path("/lib64")))
    words = ("", "a b", "ü€\udcff", "x" * 100_000)
    environment = {f"N{number}": "y" * number for number in range(50)}
    code = "import os, sys; print(ascii(sys.argv[1:])); print(sum(map(len, os.environ.values())))"
    python = "/usr/bin/python3"
    if not Path(python).exists():
        pytest.skip("there is no Python of the system")
    job = Program(argv=(python, "-I", "-c", code, *words), cwd=tmp_path, policy=policy, environment=environment)
    ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    assert ended.stdout.decode().splitlines()[0] == ascii(list(words)), ended.stderr


async def test_an_observed_job_has_the_same_walls_and_its_attempts_are_told(sandbox, confine, tmp_path):
    acts = ["open('/etc/shadow')", "socket.socket()", "os.execv('/bin/true', ['true'])", "os.chmod('/etc/passwd', 0)"]
    code = (
        "import os, socket\ndef main(acts):\n    outcomes = []\n    for act in acts:\n"
        "        try: exec(act)\n        except OSError as problem: outcomes.append(problem.errno)\n    return outcomes\n"
    )
    job = PythonFile(
        path=tmp_path / "tool" / "sample.py",
        code=code.encode(),
        entry="main",
        arguments={"acts": acts},
        policy=confine(observe=True),
    )
    ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    assert json.loads(ended.result)["value"] == [13, 1, 1, 30]
    denied = {(effect.act, effect.what) for effect in ended.effects if effect.denied}
    assert {("read", "/etc/shadow"), ("write", "/etc/passwd")} <= denied
    assert {act for act, _ in denied} == {"read", "write", "connect", "start"}
