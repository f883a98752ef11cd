"""How many modules of ours a cold call loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

# The numbers of today; a change may lower them, and must not raise them without a reason.
# A file is read by three modules and a table beside its format, and its result is written by the one that writes every result.
# Icons are read wherever options of `@tool` are.
# What registers the files of other frameworks is asked for every folder; their reader, and that of programs, is loaded for such a file alone.
# What tools may use is a module of its own, which every call asks.
# The conversion of values by hints stands below Result, whose `value_as` uses it.
# What explains wrong values, and what escapes characters for a terminal, is loaded where there is such a value or character.
# A text is looked at by one module more; the rules themselves, ten modules, are loaded for a command or a path.
# What registers documents, and which folders hold tool folders, is asked for every project; two plain things lie in modules of their own.
MOST_MODULES = {"file tool": 64, "file tool with a text": 65, "host function": 60}
COUNT = """
import sys
from toolcrib.__main__ import main
code = main(sys.argv[1:])
print(len([name for name in sys.modules if name.partition(".")[0] == "toolcrib"]))
sys.exit(code)
"""
HOST = 'from toolcrib import tool\n\n\n@tool\ndef add(first: int, second: int) -> int:\n    """Add."""\n    return first + second\n'
LOUD = 'def shout(text: str) -> str:\n    """Shout it."""\n    return text.upper()\n'
PLAIN = 'def double(number: int) -> int:\n    """Double it."""\n    return number * 2\n'


@pytest.mark.parametrize(
    ("kind", "settings", "words", "value"),
    [
        ("file tool", "", ["double", "number=21"], "42"),
        ("file tool with a text", "", ["shout", "text=hi"], "HI"),
        ("host function", 'modules.tools = ["host_of_pins"]\n', ["add", "first=1", "second=2"], "3"),
    ],
)
def test_a_cold_call_loads_no_more_modules_than_are_pinned(project, kind, settings, words, value):
    (project / "host_of_pins.py").write_text(HOST)
    (project / "tools" / "double.py").write_text(PLAIN)
    (project / "tools" / "shout.py").write_text(LOUD)
    (project / "toolcrib.toml").write_text(settings)
    done = subprocess.run(
        [sys.executable, "-c", COUNT, "call", *words],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    printed, loaded = done.stdout.split()
    assert (done.returncode, printed) == (0, value), done.stderr
    assert int(loaded) <= MOST_MODULES[kind], f"a cold call of a {kind} loads {loaded} modules of ours"
