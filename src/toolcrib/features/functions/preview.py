"""Show the text of a host function to a person who decides about a call of it, and say where it runs."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from toolcrib.lib.run_part import PartKind, RunPart

if TYPE_CHECKING:
    from toolcrib.model.tool import Function

OF_THE_HOST = (
    "This is the text of the function, without what it calls. "
    "The host program runs it as it was when it was loaded; an edit of its file counts from the next start on."
)
NO_TEXT = (
    "The text of the function cannot be read: the host program made it while it ran, or it is not written in Python."
)


def preview_function(function: Function) -> list[RunPart]:
    """The text of the function, as the content hash covers it."""
    identity = function.identity()
    plain = inspect.unwrap(function.call)
    code = getattr(getattr(plain, "__func__", plain), "__code__", None)
    places = () if code is None else (("written in", f"{code.co_filename}:{code.co_firstlineno}"),)
    text = str(identity["source"])
    return [
        RunPart(
            kind=PartKind.CODE,
            title=f"{identity['module']}.{identity['name']}",
            data=text.encode("utf-8", "surrogatepass") if text else None,
            facts=(("runs in", "the process of the host program, outside the sandbox"), *places),
            note=OF_THE_HOST if text else NO_TEXT,
        )
    ]
