"""Show the source of a host function, and where it runs, to a person who approves a call of it."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING

from toolcrib.lib.run_part import PartKind, RunPart
from toolcrib.model.tool import LOADED_AT

if TYPE_CHECKING:
    from types import CodeType

    from toolcrib.model.tool import Function

OF_THE_HOST = (
    "This is the text of the function, without what it calls. "
    "The host program runs it as it was when it was loaded; an edit of its file counts from the next start on."
)
NO_TEXT = (
    "The text of the function cannot be read: the host program made it while it ran, or it is not written in Python."
)
CHANGED = (
    "Its file was changed after the host program had started, so that its text may not be what runs, and is not shown; "
    "start the program again."
)


def preview_function(function: Function) -> list[RunPart]:
    """The source of the function, as the content hash covers it."""
    identity = function.identity()
    plain = inspect.unwrap(function.call)
    code = getattr(getattr(plain, "__func__", plain), "__code__", None)
    places = () if code is None else (("written in", f"{code.co_filename}:{code.co_firstlineno}"),)
    text = "" if _is_changed(code) else str(identity["source"])
    return [
        RunPart(
            kind=PartKind.CODE,
            title=f"{identity['module']}.{identity['name']}",
            data=text.encode("utf-8", "surrogatepass") if text else None,
            facts=(("runs in", "the process of the host program, outside the sandbox"), *places),
            note=OF_THE_HOST if text else CHANGED if _is_changed(code) else NO_TEXT,
        )
    ]


def _is_changed(code: CodeType | None) -> bool:
    """Whether the file of the function was changed after it may have been loaded."""
    try:
        # The ctime, which programs cannot set.
        return code is not None and os.stat(code.co_filename).st_ctime > LOADED_AT  # noqa: PTH116 - no path is needed
    except (OSError, ValueError):
        return False
