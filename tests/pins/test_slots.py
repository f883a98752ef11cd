"""Jobs that a script starts by calling tools."""

from __future__ import annotations

import pytest

from toolcrib import Crib

OUTER = """
__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "pins"
__tool_description__ = "Call another tool"
__requires__ = ["rye.execute"]

import rye


def main(number: int) -> int:
    return rye.execute("{inner}", {{"number": number}})
"""
PLAIN = 'def double(number: int) -> int:\n    """Double it."""\n    return number * 2\n'
SCRIPT = OUTER.partition("__requires__")[0] + "\n\ndef main(number: int) -> int:\n    return number * 2\n"


@pytest.mark.parametrize("inner", ["double", "script_double"])
def test_a_tool_that_a_script_calls_runs_in_the_slot_of_the_script(project, inner):
    folder = project / ".ai" / "tools" / "pins"
    folder.mkdir(parents=True)
    (folder / "outer.py").write_text(OUTER.format(inner=inner))
    (folder / "script_double.py").write_text(SCRIPT)
    (project / "tools" / "double.py").write_text(PLAIN)
    # There is one slot, and the script has it: a tool that needed another one would wait until its time is over.
    with Crib(project, sandbox={"jobs": 1}, grants={"*": ["rye.execute"]}, calls={"timeout_ms": 10_000}) as crib:
        result = crib.call_sync("outer", number=21)
    assert result.value == 42, result.error
