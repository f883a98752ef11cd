"""Send fewer messages from a test process to the one that shows the results.

A pytest plugin, loaded by tests/conftest.py. A worker of pytest-xdist sends six messages for every test: its start, three reports, its end,
and that it is ready for the next one. They take 0.6 ms of computing, about a third of what a small test costs. Without -v and
--durations only the report of the test itself, those with something to show, and the last message are used: the others stay unsent.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

UNUSED = {"logstart", "logfinish"}


def pytest_sessionstart(session: pytest.Session) -> None:
    """In a worker, put a filter before what it sends."""
    options = session.config.option
    if not hasattr(session.config, "workerinput") or options.verbose > 0 or options.durations or options.xmlpath:
        return
    [worker] = (plugin for plugin in session.config.pluginmanager.get_plugins() if hasattr(plugin, "sendevent"))
    send = worker.sendevent

    def send_what_is_used(name: str, **facts: object) -> None:
        if name not in UNUSED and not is_unused(facts.get("data")):
            send(name, **facts)

    worker.sendevent = send_what_is_used  # type: ignore[attr-defined]


def is_unused(report: object) -> bool:
    """Whether it is the report of a set-up or an end that went well and printed nothing."""
    return (
        isinstance(report, Mapping)
        and report.get("when") in {"setup", "teardown"}
        and report.get("outcome") == "passed"
        and not report.get("sections")
    )
