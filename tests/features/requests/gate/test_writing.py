"""The contract as a file of tests: it passes beside an honest package and fails beside a faulty one, with pytest alone."""

import ast
import os
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from toolcrib.features.requests.gate.contract_tests import write_contract_tests

USAGE = "from tools.{name} import shout\n\nshout(text='Ahoy')\n"
SIGNATURE = "test_the_function_takes_exactly_the_inputs"
DEFAULTS = "test_the_defaults_are_those_of_the_request"
SHAPE = "test_what_the_inputs_allow_is_answered_in_the_declared_shape"
EXAMPLES = "test_the_answer_is_the_one_that_the_request_shows"
VARIES = "test_the_answer_has_to_do_with_the_question"
SHOWN = [{"input": {"text": "ahoy", "times": 1}, "output": {"loud": "AHOY", "letters": 4, "first": "a"}}]
CONSTANT = "def shout(text: str, times: int = 2):\n    return {'loud': 'AHOY', 'letters': 4, 'first': 'a'}\n"
NARROW = CONSTANT.replace("    return", "    assert text == 'ahoy' and times == 1\n    return")

FAULTS = {
    "wrong_default": (("times: int = 2", "times: int = 3"), {DEFAULTS}),
    "extra_input": (("times: int = 2", "times: int = 2, tone: str = ''"), {SIGNATURE}),
    "wrong_name": (("def shout", "def yell"), {SIGNATURE, DEFAULTS, SHAPE, VARIES}),
    "wrong_type": (("len(text)", "str(len(text))"), {SHAPE}),
    "null_where_not_allowed": (('"loud": loud', '"loud": loud or None'), {SHAPE}),
    "undeclared_output": (('"loud": loud', '"loud": loud, "more": 1'), {SHAPE}),
    "missing_output": (('"loud": loud, ', ""), {SHAPE}),
    "failing_call": (("    loud =", "    1 / len(text)\n    loud ="), {SHAPE, VARIES}),
    "constant_answer": (("    loud =", "    text = 'x'\n    times = 1\n    loud ="), {VARIES}),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, wanted, honest):
    """Which tests failed, by the name of the package, all in one run of pytest."""
    root = tmp_path_factory.mktemp("workspaces")

    def lay_out(name, code, **fields):
        request = wanted(name=name, example_usage=USAGE.format(name=name), **fields)
        for folder in ("package", "contract"):
            (root / name / folder).mkdir(parents=True)
        (root / name / "package" / f"{name}.py").write_text(code)
        (root / name / "contract" / "test_contract.py").write_text(write_contract_tests(request))

    lay_out("honest_tool", honest)
    lay_out("honest_async", honest.replace("def", "async def"))
    lay_out("honest_examples", honest, examples=SHOWN)
    lay_out("honest_network", "def shout(text, times=2): ...", capabilities=["net.http"])
    lay_out("honest_narrow", NARROW, examples=SHOWN)
    lay_out("empty_package", "")
    lay_out("constant_example", CONSTANT, examples=SHOWN)
    lay_out("wrong_example", honest.replace("upper()", "lower()"), examples=SHOWN)
    for name, ((old, new), _) in FAULTS.items():
        lay_out(name, honest.replace(old, new))
    report = root / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [
        "--tb=no",
        "--import-mode=importlib",
        f"--junitxml={report}",
        f"--rootdir={root}",
        "-c",
        "/dev/null",
        str(root),
    ]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=root, env=alone, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert list(root.rglob("package/__pycache__")) == [], "the package stays as its maker left it"
    failed: dict[str, set[str]] = {}
    for case in ET.parse(report).iter("testcase"):
        names = failed.setdefault(case.attrib["classname"].split(".")[0], set())
        if case.find("failure") is not None or case.find("error") is not None:
            names.add(case.attrib["name"].partition("[")[0])
    return failed


@pytest.mark.parametrize("name", ["honest_tool", "honest_async", "honest_examples", "honest_network", "honest_narrow"])
def test_an_honest_package_passes_its_contract(name, outcomes):
    assert outcomes[name] == set()


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_package_fails_the_test_that_is_about_its_fault(name, outcomes):
    assert outcomes[name] == FAULTS[name][1]


def test_an_empty_package_and_a_wrong_answer_fail(outcomes):
    assert SIGNATURE in outcomes["empty_package"]
    assert outcomes["wrong_example"] == {EXAMPLES}


def test_examples_with_one_answer_do_not_excuse_a_constant(outcomes):
    assert outcomes["constant_example"] == {VARIES}


def test_the_file_is_the_same_every_time_and_needs_nothing_but_pytest(wanted):
    text = write_contract_tests(wanted(examples=SHOWN))
    assert text == write_contract_tests(wanted(examples=SHOWN))
    modules = {
        (alias.name if isinstance(node, ast.Import) else node.module).partition(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert modules - set(sys.stdlib_module_names) == {"pytest"}


@pytest.mark.parametrize("text", ['"""', "\\", "\n'''\n", "\u2028", "{FACTS}", "@FACTS@", "\ud83d\ude42"[:0] + "🙂"])
def test_words_of_a_request_never_become_code(text, wanted):
    given = [{"name": "text", "type": "string", "description": "A text", "default": f"{text}\nimport os; {text}"}]
    written = write_contract_tests(wanted(inputs=given, description=text + "x", example_usage=None))
    tree = ast.parse(written)
    assert "os" not in {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    values = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}
    assert ast.literal_eval(values["DEFAULTS"]) == {"text": f"{text}\nimport os; {text}"}
