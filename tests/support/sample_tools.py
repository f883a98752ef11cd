"""Tools of a kind, with defaults for what a test does not name: a function of the host program, a file, requests over HTTP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib import Tool, tool_of
from toolcrib.model.tool import Behaviour, Chained, Encoding, ErrorMode, Http, HttpCall, SideEffects, Spelling

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def nothing() -> None:
    """Do nothing."""


def host_tool(name: str = "sample", call: Callable[..., object] = nothing, **facts: Any) -> Tool:
    """A function of the host program as a tool that takes and returns anything, changed by these facts; words will do for kinds."""
    for key, words in (("behaviour", Behaviour), ("side_effects", SideEffects)):
        if facts.get(key) is not None:
            facts[key] = words(facts[key])
    plain = replace(
        tool_of(call), name=name, description="", parameters={"type": "object"}, output_schema=None, origin=None
    )
    return replace(plain, **facts)


def file_run(kind: str = "script", **facts: Any) -> Chained:
    """How a tool runs that a file of a project describes and no other tool runs."""
    return Chained(**{"kind": kind, "tool_type": kind, "executor": None, "folder": Path(), **facts})


def http_call(*, encoding: str = "json", error_mode: str = "fail", **facts: Any) -> HttpCall:
    """One request of a tool; how its response is read, and what follows when it fails, are given by their words."""
    return HttpCall(encoding=Encoding(encoding), error_mode=ErrorMode(error_mode), **facts)


def http_run(*calls: HttpCall, spelling: str = "dollars", **facts: Any) -> Http:
    """How a tool runs that makes these requests, one after the other."""
    return Http(calls=calls, spelling=Spelling(spelling), **facts)
