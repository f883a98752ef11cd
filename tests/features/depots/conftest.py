"""Two projects and a depot between them."""

import functools
import http.server
import threading

import pytest

from toolcrib import Crib

HELLO = '''\
def hello(name: str = "World") -> str:
    """Greet somebody."""
    return f"Hello, {name}!"
'''


@pytest.fixture
def project_of(tmp_path):
    """Make a project with these plain tools, and open a crib over it."""

    def make(name: str, /, settings: str = "", **tools: str) -> Crib:
        root = tmp_path / name
        (root / "tools").mkdir(parents=True, exist_ok=True)
        (root / "toolcrib.toml").write_text(settings)
        for tool, code in tools.items():
            (root / "tools" / f"{tool}.py").write_text(code)
        return Crib(root, environment={})

    return make


@pytest.fixture
def depot(tmp_path):
    return tmp_path / "depot"


@pytest.fixture
def author(project_of):
    with project_of("author", hello=HELLO) as crib:
        yield crib


@pytest.fixture
def user(project_of):
    with project_of("user") as crib:
        yield crib


@pytest.fixture
def served(depot):
    """The depot behind a plain static web server; its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(depot)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join(25)
    server.server_close()
