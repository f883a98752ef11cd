"""The documents' import paths: there inside the block, never in front of a user's own module, gone without a trace."""

import subprocess
import sys

import pytest

from warm_python import run_python

HEAD = """
import sys
from toolcrib.features.agent_classes.import_paths import PATHS, document_imports

def ours():
    return sorted(name for name in sys.modules if name.partition(".")[0] in ("core", "tool"))
"""


def test_every_spelling_of_the_imports_works_and_leaves_nothing_behind(run_fresh):
    printed = run_fresh(
        HEAD
        + """
before = list(sys.meta_path)
with document_imports():
    from core import rules
    from core import types as kinds
    import core.rules as again
    import tool.bases, tool.index
    from tool.bases import *
    from tool import bases
    assert again is rules and tool.bases is bases
    assert kinds.ToolCall.__module__ == bases.BaseTool.__module__ == "toolcrib.features.agent_classes.classes"
    assert create_json_schema is bases.create_json_schema
    assert rules.SafetyRule.__name__ == "SafetyRule" and rules.AuthRule and rules.RuleEngine
    assert ours() == sorted(PATHS)
assert sys.meta_path == before and ours() == []
# What was imported stays usable.
assert rules.RuleEngine and kinds.ToolResult("1").success
try:
    import core
except ModuleNotFoundError:
    print("gone")
"""
    )
    assert printed == "gone\n"


def test_what_the_paths_do_not_hold_is_an_import_error(run_fresh):
    printed = run_fresh(
        HEAD
        + """
with document_imports():
    for line in ("import core.other", "from core import other", "from core.types import Other", "import tools"):
        try:
            exec(line)
        except ImportError as problem:
            print(type(problem).__name__)
"""
    )
    assert printed.split() == ["ModuleNotFoundError", "ImportError", "ImportError", "ModuleNotFoundError"]


@pytest.mark.parametrize(
    "files",
    [
        {"core.py": "mine = 1"},
        {"core/__init__.py": "mine = 1"},
        {"core/__init__.py": "mine = 1", "core/types.py": "mine = 1"},
        {"core/readme.txt": "a folder without __init__.py is a package too"},
    ],
)
@pytest.mark.parametrize("is_loaded_before", [True, False])
def test_a_module_of_the_users_own_is_never_hidden_and_never_added_to(run_fresh, files, is_loaded_before):
    printed = run_fresh(
        HEAD
        + f"""
sys.path.insert(0, ".")
if {is_loaded_before}:
    import core
with document_imports():
    import core
    for name in ("types", "rules"):
        try:
            module = __import__(f"core.{{name}}", fromlist=["x"])
            print(name, module.mine)
        except ModuleNotFoundError:
            print(name, "absent")
    # No project has the other name, and it is offered.
    from tool.bases import BaseTool
assert "core" in sys.modules and "tool" not in sys.modules
import core as after
assert after is core
""",
        files,
        start=run_python,
    )
    assert printed == f"types {'1' if 'core/types.py' in files else 'absent'}\nrules absent\n"


def test_a_block_inside_a_block_takes_nothing_away_from_the_outer_one(run_fresh):
    run_fresh(
        HEAD
        + """
with document_imports():
    import core.types
    before = sys.modules["core.types"]
    with document_imports():
        import tool.bases
    assert sys.modules["core.types"] is before
    import core.rules
    try:
        with document_imports():
            raise KeyError
    except KeyError:
        pass
    import tool.index
assert ours() == []
"""
    )


def test_threads_that_load_at_the_same_time_do_not_disturb_each_other(run_fresh):
    printed = run_fresh(
        HEAD
        + """
import threading
sys.setswitchinterval(1e-6)
before = list(sys.meta_path)
start, failures = threading.Barrier(8), []

def load():
    start.wait(25)
    for _ in range(150):
        try:
            with document_imports():
                from core.types import ToolCall
                from tool.bases import BaseTool
                import core.rules, tool.index
        except BaseException as problem:
            failures.append(repr(problem))

threads = [threading.Thread(target=load) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(20)
assert ours() == [] and sys.meta_path == before
print(failures[:3])
"""
    )
    assert printed == "[]\n"


def test_the_plug_in_offers_the_paths_to_every_conftest_and_test(tmp_path):
    (tmp_path / "conftest.py").write_text("from core.types import ToolCall\n")
    (tmp_path / "test_it.py").write_text("def test_it():\n    from tool.bases import BaseTool\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False)
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr
