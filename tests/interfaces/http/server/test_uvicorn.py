"""What the server uses of the inside of uvicorn is there in the installed version."""

from __future__ import annotations

import inspect

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from toolcrib.interfaces.http.uvicorn_server import Cycle, GuardedProtocol, Server


@pytest.mark.parametrize(
    ("ours", "theirs"), [(GuardedProtocol, HttpToolsProtocol), (Cycle, RequestResponseCycle), (Server, uvicorn.Server)]
)
def test_every_method_that_is_replaced_takes_what_that_of_uvicorn_takes(ours, theirs):
    own = {"look", "run"}  # the first is ours alone, the second is another method on purpose
    replaced = [
        name
        for name, member in vars(ours).items()
        if inspect.isfunction(member) and not name.startswith("_") and name not in own
    ]
    assert replaced
    for name in replaced:
        given = [parameter.name for parameter in inspect.signature(getattr(ours, name)).parameters.values()]
        wanted = [parameter.name for parameter in inspect.signature(getattr(theirs, name)).parameters.values()]
        assert given == wanted, name


def test_an_answer_is_made_of_what_uvicorn_makes_it_of():
    made = set(inspect.signature(RequestResponseCycle.__init__).parameters) - {"self"}
    assert made == {
        *("scope", "transport", "flow", "logger", "access_logger", "access_log", "default_headers"),
        *("message_event", "expect_100_continue", "keep_alive", "on_response"),
    }


def test_the_state_that_is_read_is_kept_by_uvicorn():
    protocol = HttpToolsProtocol(uvicorn.Config(lambda: None, log_config=None), ServerState(), {}, _Loop())
    for name in (
        "parser",
        "flow",
        "pipeline",
        "cycle",
        "headers",
        "server_state",
        "expect_100_continue",
        "app",
        "loop",
    ):
        assert hasattr(protocol, name), name
    for name in ("tasks", "connections", "total_requests", "default_headers"):
        assert hasattr(ServerState(), name), name
    for name in ("_start_asgi_task", "shutdown"):
        assert hasattr(HttpToolsProtocol, name), name
    assert STATUS_LINE[200] == b"HTTP/1.1 200 OK\r\n"


class _Loop:
    """Stands where uvicorn only keeps the loop."""
