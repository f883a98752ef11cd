"""Every fault that is planted in a candidate is found, told in words that name the place and the cure."""

import pytest

ANSWER = '{"loud": text.upper() * (times > 0), "letters": len(text), "first": None}'


def shout(body="", *, answer=ANSWER, signature="text: str, times: int = 2", before="", after=""):
    """A `shout` with something in it, before it or behind it."""
    lines = [line for line in body.strip("\n").splitlines() if line.strip()]
    inner = "".join(f"    {line}\n" for line in lines)
    return f"{before}\ndef shout({signature}):\n{inner}    return {answer}\n{after}\n"


READ = {
    "another function": (
        shout().replace("def shout", "def yell"),
        "text_shouter.py: defines no function shout, which the example imports",
        "write def shout(text, times):",
    ),
    "no function": ("x = 1\n", "it has no function at all"),
    "a class": ("class shout:\n    pass\n", "text_shouter.py:1: shout is not a plain function of the module"),
    "a lambda": ("shout = lambda text, times=2: {}\n", "text_shouter.py:1: shout is not a plain function"),
    "an import": ("from helper import shout\n", "text_shouter.py:1: shout is not a plain function of the module"),
    "behind a condition": (
        "import sys\nif sys.platform:\n    def shout(text, times=2):\n        return {}\n",
        "text_shouter.py:3: shout is not a plain function of the module; write def shout(text, times): at the left margin",
    ),
    "in a function": (
        "def make():\n    def shout(text, times=2):\n        return {}\n    globals()['shout'] = shout\nmake()\n",
        "text_shouter.py:2: shout is defined inside something else",
    ),
    "in a text": ("exec('def shout(text, times=2): return {}')\n", "defines no function shout"),
    "bound twice": (shout(after="shout = print"), "text_shouter.py:4: shout is bound a second time"),
    "bound twice by global": (
        shout(after="def later():\n    global shout\n    shout = print"),
        "text_shouter.py:5: shout is bound a second time; define it once",
    ),
    "bound twice in passing": (
        shout(after="with open(__file__) as shout:\n    pass"),
        "text_shouter.py:4: shout is bound a second time",
    ),
    "missing input": (shout(signature="text", answer="{}"), "text_shouter.py:2: shout has no parameter times"),
    "extra required input": (
        shout(signature="text, tone, times=2"),
        "shout has the parameter tone, which is not an input of the request, and callers would have to give it; remove it",
    ),
    "extra optional input": (
        shout(signature="text, times=2, *, tone='high'"),
        "shout has the parameter tone, which is not an input of the request, even with a default; remove it",
    ),
    "any input": (shout(signature="text, times=2, **rest"), "shout takes **rest; remove it"),
    "any position": (shout(signature="text, times=2, *rest"), "shout takes *rest; remove it"),
    "by position only": (shout(signature="text, /, times=2"), "text cannot be given by name; remove the '/'"),
    "wrong default": (
        shout(signature="text, times=3"),
        "times defaults to 3, and the request says 2; write times=2",
    ),
    "true for a number": (shout(signature="text, times=True"), "times defaults to True, and the request says 2"),
    "no default": (shout(signature="text, times"), "times is optional and has no default; write times=2"),
    "a default too many": (shout(signature="text='', times=2"), "text is required by the request and has a default"),
    "wrong annotation": (
        shout(signature="text: int, times: int = 2"),
        "text is annotated int, and the request says string; correct the annotation",
    ),
    "wrong annotation in quotes": (
        shout(signature="text: str, times: 'list[int]' = 2"),
        "times is annotated 'list[int]', and the request says integer",
    ),
    "wrong answer annotated": (
        shout().replace("= 2):", "= 2) -> list[str]:"),
        "shout is annotated to return list[str], and the request declares outputs",
        'return a dict {"loud": …, "letters": …, "first": …}',
    ),
    "syntax error": (shout(before="def half("), "text_shouter.py:1:", "correct the line"),
    "not UTF-8": (b"def shout(text, times=2):\n    return '\xff'\n", "text_shouter.py: not UTF-8 at byte 38"),
    "a NUL": (b"def shout(text, times=2):\n    return {}\0\n", "text_shouter.py: holds a NUL byte"),
}


@pytest.mark.spec("S0-26")
@pytest.mark.parametrize("name", READ)
def test_a_wrong_interface_is_seen_without_running_anything(name, prove):
    code, *words = READ[name]
    judgement = prove({"text_shouter.py": code, "helper.py": "def shout(text, times=2): ..."}, trial=None)
    assert {complaint.check for complaint in judgement.complaints} == {"interface"}
    assert judgement.checks == ("nothing of it was run",)
    assert not judgement.passed
    assert not judgement.unprovable
    text = "\n".join(complaint.text for complaint in judgement.complaints)
    assert [word for word in words if word not in text] == [], text


def test_the_entry_file_is_named_like_the_tool(prove):
    judgement = prove({"shouter.py": shout(), "README.md": "# Hello"}, trial=None)
    assert [complaint.text for complaint in judgement.complaints] == [
        "there is no text_shouter.py, only README.md, shouter.py; write def shout(…) in text_shouter.py"
    ]


def test_every_module_of_a_package_has_to_be_readable(prove):
    judgement = prove({"text_shouter.py": shout(), "inner/broken.py": "def half("}, trial=None)
    assert [complaint.text for complaint in judgement.complaints] == [
        "inner/broken.py:1: '(' was never closed; correct the line"
    ]


IMPORTED = {
    "writes a file": (
        shout(before="open('/tmp/mark', 'w').close() if False else open('/etc/mark', 'a')"),
        "effects",
        "importing text_shouter.py: it writes to /etc/mark (it was denied); remove it",
    ),
    "tries to write": (
        shout(before="try:\n    open('/etc/mark', 'w')\nexcept OSError:\n    pass"),
        "effects",
        "importing text_shouter.py: it writes to /etc/mark (it was denied)",
    ),
    "connects": (
        shout(
            before="import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), 1)\nexcept OSError:\n    pass",
        ),
        "effects",
        "importing text_shouter.py: it connects to",
        "remove it, or have net.http among the capabilities of the request",
    ),
    "starts a program": (
        shout(before="import os\ntry:\n    os.system('true')\nexcept OSError:\n    pass"),
        "effects",
        "importing text_shouter.py: it starts /",
        "have shell.execute among the capabilities of the request",
    ),
    "prints": (
        shout(before="print('hello')"),
        "import",
        "importing text_shouter.py prints 'hello\\n'; print nothing at the top level",
    ),
    "prints behind Python's back": (
        shout(before="import os\nos.write(2, b'hello')"),
        "import",
        "importing text_shouter.py prints 'hello'; print nothing at the top level",
    ),
    "leaves a thread": (
        shout(
            before="import threading, time\nthreading.Thread(target=time.sleep, args=(9,), name='idler', daemon=True).start()",
        ),
        "import",
        "importing text_shouter.py leaves the thread idler running; do such things inside the function",
    ),
    "leaves a process": (
        shout(before="import os, time\nif os.fork() == 0:\n    time.sleep(9)\n    os._exit(0)"),
        "import",
        "importing text_shouter.py leaves a process running",
    ),
    "leaves a daemon": (
        shout(
            before="import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(9)\n"
            "    os._exit(0)\nos.wait()",
        ),
        "import",
        "importing text_shouter.py leaves a process running",
    ),
    "handles a signal": (
        shout(before="import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)"),
        "import",
        "importing text_shouter.py leaves a handler of SIGTERM",
    ),
    "waits for the exit": (
        shout(before="import atexit\ndef later(): ...\natexit.register(later)"),
        "import",
        "importing text_shouter.py leaves later to be called at the exit",
    ),
    "replaces a builtin": (
        shout(before="import builtins\nbuiltins.len = lambda of: 0"),
        "import",
        "importing text_shouter.py leaves another len among the builtins",
    ),
    "ends the process": (
        shout(before="import sys\nsys.exit(0)"),
        "import",
        "importing text_shouter.py ends the process (SystemExit: 0 (at text_shouter.py:2)); remove the call of exit",
    ),
    "ends the process at once": (
        shout(before="import os\nos._exit(0)"),
        "import",
        "importing text_shouter.py fails:",
        "do nothing at the top level but define",
    ),
    "never ends": (
        shout(before="while True: pass"),
        "import",
        "importing text_shouter.py does not end in time; do nothing at the top level but define",
    ),
    "raises": (
        shout(before="1 / 0"),
        "import",
        "importing text_shouter.py raises ZeroDivisionError: division by zero (at text_shouter.py:1); correct it",
    ),
    "lacks a module": (
        shout(before="import no_such_module_anywhere"),
        "import",
        (
            "text_shouter.py imports no_such_module_anywhere, which is not installed for it; "
            "import what Python brings with it, or modules that lie beside it in the package"
        ),
    ),
    "imports with dots": (
        shout(before="from .helper import louder"),
        "import",
        "text_shouter.py imports with dots (ImportError: attempted relative import with no known parent package",
        "a file beside it goes by its own name: from helper import …",
    ),
    "wraps itself": (
        shout(after="shout.__wrapped__ = shout"),
        "interface",
        "the signature of shout cannot be read; remove the decorator that hides it",
    ),
    "counts its neighbours": (
        shout(
            before="import os\nTIMES = 1 + len(os.listdir(os.path.dirname(__file__)))", signature="text, times=TIMES"
        ),
        "interface",
        "times defaults to 4, and the request says 2",
    ),
    "is replaced by hand": (
        shout(after="def other(text, times=2):\n    return {}\nglobals()['shout'] = other"),
        "interface",
        "after the import shout is the function at text_shouter.py:4 and not the one at line 2; define it once",
    ),
    "is a decorated mystery": (
        shout(before="def hide(function):\n    return lambda **anything: function(**anything)\n@hide"),
        "interface",
        "after the import shout takes (anything) and not (text, times); remove what changes it",
    ),
    "computes a wrong default": (
        shout(before="THRICE = 1 + 2", signature="text, times=THRICE"),
        "interface",
        "text_shouter.py: shout: times defaults to 3, and the request says 2; write times=2",
    ),
    "answers in the gate's place": (
        shout(
            before="import os, sys\nframe = sys._getframe()\nwhile frame and frame.f_code.co_name != 'probe':\n"
            "    frame = frame.f_back\nif frame:\n    frame.f_globals['_describe_function'] = lambda *_: 'fine'",
        ),
        "import",
        "importing text_shouter.py puts an answer of its own in place of the gate's; remove what does that",
    ),
}


@pytest.mark.parametrize("name", IMPORTED)
def test_what_importing_does_is_seen(name, prove):
    code, check, *words = IMPORTED[name]
    judgement = prove(code, seconds=0.5 if name == "never ends" else 10)
    assert not judgement.passed
    texts = [complaint.text for complaint in judgement.complaints if complaint.check == check]
    assert [word for word in words if not any(word in text for text in texts)] == [], judgement.complaints


def test_a_file_that_is_called_like_a_module_of_python_is_not_what_is_imported(prove):
    files = {"inspect.py": "raise SystemExit", "json.py": "raise SystemExit"}
    judgement = prove({"text_shouter.py": shout(before="import inspect, json\njson.dumps(1)"), **files})
    assert (judgement.passed, judgement.complaints) == (True, ())


# One input of two values, so that few calls are made.
LOUDLY = {"name": "loudly", "type": "boolean", "description": "Whether to shout", "default": False}
CALL = "shout()"
GOOD = '{"loud": str(loudly), "letters": 1 + loudly, "first": None}'
REFUSAL = "class ToolError(Exception):\n    kind = 'VALIDATION'"


def called(body="", *, answer=GOOD, before=""):
    """A `shout` of the one input."""
    return shout(body, answer=answer, signature="loudly: bool = False", before=before)


def trying(what):
    """Lines that try something and go on."""
    return f"try:\n    {what}\nexcept OSError:\n    pass"


# A loop that computes is tried at the import; the others wait, which takes no computing.
WAIT = "time.sleep(1)"
CONNECTING = "import socket\n" + trying("socket.create_connection(('192.0.2.1', 80), 1)")
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(9)
    os._exit(0)
os.wait()
"""
WRITING_OVER = """
import json, os
for number in range(3, 20):
    try:
        os.write(number, json.dumps({"value": {"loud": "HEY"}}).encode())
    except OSError:
        pass
"""
CHANCE = """
import secrets
drawn = "x" * secrets.randbelow(10)
"""
KNOWING_BETTER = """
import functools
def told(function):
    @functools.wraps(function)
    def inner(**given):
        return function(loudly=given.get("loudly", True))
    return inner
@told
"""

CALLED = {
    "a missing output": (
        called(answer='{"loud": "", "letters": 1 + loudly}'),
        "output",
        "shout(): OUTPUT_INVALID: text_shouter returned something else than it promises: ",
        "first",
        "return every declared output, of its declared type, and no others",
    ),
    "a wrong type": (
        called(answer='{"loud": "", "letters": str(loudly), "first": None}'),
        "output",
        'letters: "False" is not of type integer',
    ),
    "null where it is not allowed": (
        called(answer='{"loud": None, "letters": 1 + loudly, "first": None}'),
        "output",
        "loud: null is not of type string",
    ),
    "an undeclared output": (
        called(answer='{"loud": "", "letters": 1 + loudly, "first": None, "extra": 1}'),
        "output",
        "extra",
    ),
    "a list for an object": (called(answer="[loudly]"), "output", "is not of type object"),
    "a number that JSON has not": (
        called(answer='{"loud": "", "letters": float("nan"), "first": None}'),
        "output",
        "OUTPUT_INVALID: text_shouter returned what has no JSON form",
    ),
    "an answer that is printed and not returned": (
        called('print(\'{"loud": "HEY"}\')', answer="None"),
        "output",
        "letters",
    ),
    "an undeclared connection": (
        called(CONNECTING),
        "effects",
        "shout(): it connects to",
        "remove it, or have net.http among the capabilities of the request",
    ),
    "an undeclared write": (
        called(trying("open('/var/mark', 'w')")),
        "effects",
        "shout(): it writes to /var/mark (it was denied); remove it: no capability opens that",
    ),
    "an undeclared read": (
        called(trying("open('/etc/shadow')")),
        "effects",
        "shout(): it reads /etc/shadow (it was denied); remove it: no capability opens that",
    ),
    "an undeclared write that fails the call": (
        called("open('/var/mark', 'w')"),
        "effects",
        "shout(): it writes to /var/mark",
    ),
    "a program": (
        called("import os\n" + trying("os.system('true')")),
        "effects",
        "shout(): it starts /",
        "remove it, or have shell.execute among the capabilities of the request",
    ),
    "its own package": (
        called(trying("open(__file__, 'a')")),
        "effects",
        "shout(): it writes to",
        "text_shouter.py (it was denied); remove it",
    ),
    "a look at its keepers": (
        called(trying("open('/proc/1/environ')")),
        "effects",
        "shout(): it reads /proc/1/environ (it was denied); remove it",
    ),
    "a daemon": (called(DAEMON), "effects", "shout() leaves a process behind; end what it began"),
    "an answer that never varies": (
        called(answer='{"loud": "HEY", "letters": 3, "first": "H"}'),
        "varies",
        "not provable, add examples: shout answers {'loud': 'HEY', 'letters': 3, 'first': 'H'} to each of 2 different calls",
    ),
    "an answer that is left to chance": (
        called(CHANCE, answer='{"loud": drawn, "letters": len(drawn), "first": None}'),
        "varies",
        "not provable, add examples of inputs that leave nothing to chance: shout answers otherwise when the very same call",
        "nothing in its answers follows from the inputs",
    ),
    "an endless loop": (
        called(f"import time\nwhile True: {WAIT}"),
        "limits",
        "TIMEOUT: text_shouter ran longer than 0.5 s; its processes were killed; do less, or do it sooner",
    ),
    "an endless loop for one input": (
        called(f"import time\nwhile loudly: {WAIT}"),
        "limits",
        "shout(loudly=True): TIMEOUT",
    ),
    "too much memory": (
        called("hog = [bytearray(2**20) for _ in range(2000)]"),
        "limits",
        "LIMIT_EXCEEDED: text_shouter ran out of memory: it may use 256 MB",
    ),
    "too large an answer": (
        called(answer='{"loud": "x" * 9_000_000, "letters": 1, "first": None}'),
        "limits",
        "LIMIT_EXCEEDED: text_shouter returned more than",
    ),
    "failing where the input is allowed": (
        called("if loudly:\n    raise ValueError('no throat')"),
        "accepts",
        (
            "shout(loudly=True) (loudly = True) fails: ValueError: no throat (at text_shouter.py:4); the inputs allow it, so "
            "answer it, or refuse it with toolcrib.ToolError(toolcrib.Kind.VALIDATION, why); if that input cannot be answered, have examples added to the request, which then decide"
        ),
    ),
    "failing always": (
        called("raise ValueError('not today')"),
        "accepts",
        "shout() (only what is required) fails: ValueError: not today (at text_shouter.py:3)",
    ),
    "refusing always": (
        called("raise ToolError('no')", before=REFUSAL),
        "accepts",
        "shout() (only what is required) fails: ToolError: no (at text_shouter.py:4)",
    ),
    "passing for a refusal of the platform": (
        called("raise ToolError('no')", before=REFUSAL.replace("VALIDATION", "SANDBOX_UNAVAILABLE")),
        "accepts",
        "fails: ToolError: no",
    ),
    "a failure in the envelope": (
        called(answer='{"result": None, "success": False, "error": "not today"}'),
        "accepts",
        "shout() (only what is required) fails: PERMANENT: not today",
    ),
    "refusing everything but one": (
        called(
            "if loudly:\n    raise ToolError('no')", before=REFUSAL, answer='{"loud": "HEY", "letters": 3, "first": ""}'
        ),
        "varies",
        "not provable, add examples",
    ),
    "a default of its own": (
        called(before=KNOWING_BETTER.strip()),
        "defaults",
        "shout() by itself answers {'loud': 'True',",
        "use the defaults of the request",
    ),
    "an answer written in the platform's place": (called(WRITING_OVER), "output", "gave an answer that cannot be read"),
}


SECONDS = {"an endless loop": 0.5, "an endless loop for one input": 2}


@pytest.mark.parametrize("name", CALLED)
def test_what_a_call_does_and_answers_is_seen(name, prove, wanted):
    code, check, *words = CALLED[name]
    request = wanted(inputs=[LOUDLY], example_usage="from tools.text_shouter import shout\n\nshout()\n")
    judgement = prove(code, request, seconds=SECONDS.get(name, 10))
    assert not judgement.passed
    assert judgement.unprovable is (check == "varies")
    texts = [complaint.text for complaint in judgement.complaints if complaint.check == check]
    assert [word for word in words if not any(word in text for text in texts)] == [], judgement.complaints


def test_a_candidate_is_told_of_everything_at_once(prove):
    code = shout("try:\n    open('/var/mark')\nexcept OSError:\n    pass\n1 / len(text)", answer='{"loud": 1}')
    checks = [complaint.check for complaint in prove(code).complaints]
    assert sorted(set(checks)) == ["effects", "output"]
