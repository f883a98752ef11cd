"""`from tools.<name> import f`: an import like any other, a call under guard, an answer as the document shows it."""

from __future__ import annotations

import asyncio
import copy
import importlib
import inspect
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_requests import request_of
from toolcrib import Crib, Kind, ToolError
from toolcrib.features.requests.built_functions import POOL, Answer, Record, to_answer
from toolcrib.features.requests.candidate import publish, read_candidate

TEMPLATE = Path(__file__).parents[2] / "seeds" / "fixtures" / "requests" / "full_template.yaml"
SCRAPER = """
def scrape_stargazers(repo, limit=100, include_email=True):
    users = [
        {"username": "ada", "email": "ada@example.com", "name": None, "company": None, "bio": "CTO", "location": None,
         "twitter": None, "followers": 3},
        {"username": repo, "email": None, "name": None, "company": None, "bio": None, "location": None,
         "twitter": None, "followers": limit},
    ]
    if repo == "broken":
        return {"result": {"users": users[:1]}, "success": False, "error": "GitHub stopped answering"}
    return {"users": users, "total_found": len(users), "rate_limited": False}
"""
COUNTER: dict[str, object] = {
    "id": "req_20240115_002",
    "name": "word_counter",
    "description": "Counts the words of a text",
    "inputs": [
        {"name": "text", "type": "string", "description": "The text", "required": True},
        {"name": "least", "type": "integer", "description": "Shorter words do not count"},
    ],
}
COUNT = "def word_counter(text, least=0):\n    return len([word for word in text.split() if len(word) >= least])\n"


@pytest.fixture
def put(project, tmp_path_factory) -> Callable[..., Path]:
    """Publish a package into the project; its folder."""

    def make(code: str, request=None) -> Path:
        request = request or request_of(COUNTER)
        made = tmp_path_factory.mktemp("made") / f"{request.name}.py"
        made.write_text(code)
        publish(read_candidate(made, request), request, project_tools=project / "tools")
        return project / "tools" / request.name

    return make


@pytest.fixture
def imported(project, monkeypatch) -> Iterator[Callable[[str], ModuleType]]:
    """Import a package of the project, as its own code would; everything is closed and forgotten at the end."""
    monkeypatch.syspath_prepend(str(project))
    known = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "tools"}
    yield lambda name: importlib.import_module(f"tools.{name}")
    POOL.close()
    for name in [name for name in sys.modules if name.partition(".")[0] == "tools"]:
        del sys.modules[name]
    sys.modules.update(known)


@pytest.fixture
def count(put, imported) -> Callable[..., object]:
    put(COUNT)
    return imported("word_counter").word_counter


class TestTheImport:
    @pytest.mark.spec("S0-26")
    @pytest.mark.spec("S0-35")
    def test_the_example_of_the_document_works_after_the_build(self, put, imported):
        request = request_of(TEMPLATE.read_text())
        put(SCRAPER, request)
        outreach: list[object] = []
        imported("github_stargazer_scraper")

        exec(request.example_usage, {"add_to_outreach": outreach.append})

        assert [user["username"] for user in outreach] == ["ada"]

    @pytest.mark.spec("S0-39")
    def test_without_an_example_the_function_is_called_like_the_tool_and_run(self, put, imported):
        put(COUNT)
        module = imported("word_counter")

        assert module.word_counter is module.run
        assert module.run(text="one two") == 2
        assert sorted(module.__all__) == ["run", "word_counter"]

    def test_the_functions_of_a_package_are_one_under_each_of_its_names(self, put, imported):
        put(SCRAPER, request_of(TEMPLATE.read_text()))
        module = imported("github_stargazer_scraper")

        assert module.scrape_stargazers is module.github_stargazer_scraper is module.run

    def test_the_signature_shows_the_keywords_and_the_docstring_the_description(self, put, imported, count):
        put(SCRAPER, request_of(TEMPLATE.read_text()))
        scrape = imported("github_stargazer_scraper").run

        assert str(inspect.signature(scrape)) == "(*, repo: str, limit: int = 100, include_email: bool = True)"
        assert str(inspect.signature(count)) == "(*, text: str, least: int = Ellipsis)"
        assert scrape.__doc__ == "Scrape users who starred a GitHub repo, extracting profile info"
        assert (scrape.__name__, scrape.__module__) == ("scrape_stargazers", "tools.github_stargazer_scraper")

    def test_a_package_that_was_changed_cannot_be_imported(self, put, imported):
        folder = put(COUNT)
        (folder / "word_counter.py").write_text("changed")

        with pytest.raises(ImportError, match="word_counter.py: changed since it was proved"):
            imported("word_counter")

    def test_nothing_is_opened_by_the_import(self, put, imported):
        put(COUNT)
        before = set(threading.enumerate())

        imported("word_counter")

        assert set(threading.enumerate()) <= before

    def test_the_function_can_be_sent_to_another_process(self, count):
        assert pickle.loads(pickle.dumps(count)) is count


class TestTheCall:
    def test_it_is_checked_like_any_other(self, count):
        with pytest.raises(ToolError) as caught:
            count(txt="one two")  # type: ignore[call-arg]  # that is the point

        assert caught.value.kind is Kind.VALIDATION
        assert "did you mean text?" in caught.value.message

    def test_it_runs_in_a_process_of_its_own(self, put, imported):
        put("import os\ndef word_counter(text, least=0):\n    return os.getpid()\n")

        assert imported("word_counter").run(text="x") != os.getpid()

    def test_arguments_without_a_name_are_refused_with_the_names(self, count):
        with pytest.raises(TypeError) as caught:
            count("one two")

        assert str(caught.value) == (
            "word_counter() takes its arguments by name: word_counter(*, text: str, least: int = Ellipsis)"
        )

    def test_what_the_operator_did_not_grant_is_refused(self, put, imported):
        put(COUNT, request_of({**COUNTER, "capabilities": ["net.http"]}))

        with pytest.raises(ToolError) as caught:
            imported("word_counter").run(text="x")
        assert caught.value.kind is Kind.CAPABILITY_MISSING

    def test_it_obeys_the_settings_of_its_project(self, project, put, imported):
        put(COUNT)
        (project / "toolcrib.toml").write_text('catalog.disabled = ["word_counter"]\n')

        with pytest.raises(ToolError) as caught:
            imported("word_counter").run(text="x")
        assert caught.value.kind is Kind.DISABLED

    @pytest.mark.spec("S0-27")
    def test_a_failure_is_raised_with_what_was_achieved(self, put, imported):
        put(SCRAPER, request_of(TEMPLATE.read_text()))

        with pytest.raises(ToolError) as caught:
            imported("github_stargazer_scraper").scrape_stargazers(repo="broken")

        error = caught.value
        assert (error.kind, error.message) == (Kind.PERMANENT, "GitHub stopped answering")
        assert [user.username for user in error.value] == ["ada"]

    async def test_it_can_be_called_and_awaited_inside_a_running_loop(self, count):
        assert count(text="one two") == 2
        assert await asyncio.gather(*(count.call_async(text="x " * number) for number in range(4))) == [0, 1, 2, 3]
        with pytest.raises(TypeError):
            await count.call_async("one two")

    def test_threads_share_one_crib(self, count):
        answers: list[object] = []
        threads = [threading.Thread(target=lambda: answers.append(count(text="one two"))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        assert answers == [2] * 8
        assert len(POOL._cribs) == 1

    def test_where_it_would_wait_for_itself_it_says_so(self, count, project):
        count(text="x")
        room = POOL.of(project)
        caught: list[BaseException] = []

        def call() -> None:
            try:
                count(text="x")
            except RuntimeError as problem:
                caught.append(problem)

        room._loop.call_soon_threadsafe(call)
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), room._loop).result(25)

        assert str(caught[0]) == "this code runs where the call would run; write: await word_counter.call_async(…)"

    def test_a_large_answer_comes_whole(self, put, imported):
        put("def word_counter(text, least=0):\n    return ['x' * 1000] * 1000\n")

        assert len(imported("word_counter").run(text="x")) == 1000

    def test_after_closing_the_next_call_opens_again(self, count):
        assert count(text="x") == 1
        POOL.close()
        assert count(text="x y") == 2


PROGRAM = """
import asyncio, os, sys
from tools.word_counter import word_counter

print(word_counter(text="one two"))

async def main():
    print(word_counter(text="one"), await word_counter.call_async(text=""))

asyncio.run(main())
child = os.fork()
if child == 0:
    print("child", word_counter(text="one two three"), flush=True)
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), word_counter(text="one"))
"""


INTERRUPTED = """
import asyncio, os, signal, threading, time
from toolcrib.features.requests.built_functions import POOL
from tools.word_counter import run

def going_on():
    return [task for room in list(POOL._cribs.values()) for task in asyncio.all_tasks(room._loop)]

def interrupt():
    while not going_on():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    run(text="x")
except KeyboardInterrupt:
    until = time.monotonic() + 25
    while going_on() and time.monotonic() < until:
        time.sleep(0.01)
    print(len(going_on()), "calls go on")
"""


class TestAProgram:
    def run(self, project: Path, *words: str) -> subprocess.CompletedProcess[str]:
        # Newer versions of Python warn of every fork beside a thread.
        strict = ("-W", "error", "-W", "ignore:This process:DeprecationWarning")
        return subprocess.run(
            [sys.executable, "-u", *strict, *words],
            cwd=project,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @pytest.mark.spec("S0-26")
    def test_plain_code_a_loop_and_a_forked_process_can_call_it(self, put, project):
        put(COUNT)

        ended = self.run(project, "-c", PROGRAM)

        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout.replace("child 3\n", "") == "2\n1 0\n0 1\n"
        assert "child 3\n" in ended.stdout

    def test_what_was_started_ends_with_the_program_and_what_happened_is_written_down(self, put, project):
        put(COUNT)

        ended = self.run(
            project, "-c", "from tools.word_counter import run\nprint(run(text='a b'))\nraise SystemExit(3)"
        )

        assert (ended.returncode, ended.stdout, ended.stderr) == (3, "2\n", "")
        with Crib(project) as crib:
            assert "tools/word-counter@1.0.0" in json.dumps(list(crib.journal.read()))
            assert [count.calls for count in crib.metrics.read().values()] == [1]

    def test_a_call_that_is_interrupted_is_over_for_the_tool_too(self, put, project):
        put("import time\ndef word_counter(text, least=0):\n    time.sleep(25)\n")

        ended = self.run(project, "-c", INTERRUPTED)

        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0 calls go on\n", "")

    def test_a_test_of_the_project_imports_it(self, put, project, monkeypatch):
        put(COUNT)
        (project / "test_counting.py").write_text(
            "from tools.word_counter import word_counter\n\n\n"
            "def test_it_counts():\n    assert word_counter(text='one two') == 2\n"
        )

        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

        ended = self.run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_counting.py")

        assert "1 passed" in ended.stdout


class TestWhichProject:
    def test_the_nearest_settings_above_the_tools_say_so(self, project, put, imported):
        put(COUNT)
        (project / "toolcrib.toml").write_text('catalog.disabled = ["word_counter"]\n')

        with pytest.raises(ToolError, match="disabled in toolcrib.toml"):
            imported("word_counter").run(text="a b")

    def test_without_settings_it_is_where_the_tools_lie(self, project, put, imported):
        put(COUNT)

        assert imported("word_counter").run(text="a b") == 2
        POOL.close()
        assert (project / ".toolcrib").is_dir()

    def test_settings_inside_another_project_that_open_something_are_not_obeyed(self, project, put, imported):
        (project.parent / "toolcrib.toml").touch()
        put(COUNT)
        (project / "toolcrib.toml").write_text('modules.rules = ["planted"]\n')
        try:
            with pytest.raises(ImportError) as caught:
                imported("word_counter")
        finally:
            (project.parent / "toolcrib.toml").unlink()

        assert str(caught.value) == (
            f"{project}/toolcrib.toml sets modules.rules inside the project {project.parent}, whose tools may have written "
            f"it; if you trust it, call the tool with Crib('{project}'), else with Crib('{project.parent}')"
        )

    def test_settings_of_a_stranger_further_up_are_refused(self, project, put, imported):
        put(COUNT)
        foreign = project.parent / "toolcrib.toml"
        foreign.touch()
        try:
            os.chown(foreign, 12_345, 12_345)
            with pytest.raises(ImportError, match="belongs to another user; if you trust it, call the tool with Crib"):
                imported("word_counter")
        except PermissionError:
            pytest.skip("only root can give a file away")
        finally:
            foreign.unlink()


USERS = {"type": "object", "properties": {"users": {"type": "array"}, "total": {"type": "integer"}}}
VALUE = {"users": [{"name": "Ada", "tags": [{"text": "x"}]}], "total": 1}
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


class TestTheAnswer:
    def test_it_is_a_mapping_with_attributes(self):
        answer = to_answer(VALUE, USERS)

        assert isinstance(answer, Mapping)
        assert (answer["total"], answer.total, answer.users[0].tags[0].text) == (1, 1, "x")
        assert [*answer.keys()] == ["users", "total"]
        assert "users" in answer
        assert len(answer) == 2

    def test_it_iterates_over_its_only_list(self):
        assert [user.name for user in to_answer(VALUE, USERS)] == ["Ada"]

    @pytest.mark.parametrize(
        "schema",
        [
            None,
            {"properties": {"total": {"type": "integer"}}},
            {"properties": {"users": {"type": "array"}, "total": {"type": ["array", "null"]}}},
        ],
    )
    def test_with_no_list_or_several_it_iterates_like_any_mapping(self, schema):
        assert list(to_answer(VALUE, schema)) == ["users", "total"]

    def test_a_list_that_may_be_null_counts_as_one(self):
        schema = {"properties": {"users": {"type": ["array", "null"]}}}

        assert [user.name for user in to_answer(VALUE, schema)] == ["Ada"]

    def test_a_partial_answer_without_the_list_iterates_like_any_mapping(self):
        assert list(to_answer({"total": 1}, USERS)) == ["total"]

    def test_keys_that_are_methods_of_a_mapping_are_found_by_their_key(self):
        answer = to_answer({"items": [1], "keys": 2, "values": 3, "get": 4}, None)

        assert (answer["items"], answer["keys"], answer["values"], answer["get"]) == ([1], 2, 3, 4)
        assert dict(answer.items()) == {"items": [1], "keys": 2, "values": 3, "get": 4}

    def test_an_attribute_that_is_not_there_says_what_is(self):
        with pytest.raises(AttributeError) as caught:
            to_answer({"total": 1, "rate": 2}, None).totl  # noqa: B018 - that is the point

        assert str(caught.value) == "there is no 'totl' in the answer; it holds total, rate"
        assert getattr(to_answer({}, None), "x", 5) == 5

    def test_names_that_python_asks_for_are_not_answered_by_the_tool(self):
        answer = to_answer({"__deepcopy__": "evil", "__reduce_ex__": "evil"}, None)

        assert copy.deepcopy(answer) == {"__deepcopy__": "evil", "__reduce_ex__": "evil"}

    def test_it_is_the_callers_own(self):
        answer = to_answer(VALUE, USERS)
        answer["total"] = 5

        assert answer.total == 5
        with pytest.raises(AttributeError):
            answer.total = 6

    def test_it_can_be_copied_and_sent(self):
        answer = to_answer(VALUE, USERS)

        for other in (copy.copy(answer), copy.deepcopy(answer), pickle.loads(pickle.dumps(answer))):
            assert isinstance(other, Answer)
            assert [user.name for user in other] == ["Ada"]
        assert dict(answer) == {**answer} == answer | {} == VALUE
        assert "total" in dir(answer)

    @given(plain)
    def test_it_equals_and_is_written_as_the_plain_value(self, value):
        answer = to_answer(value, USERS)

        assert answer == value
        assert json.loads(json.dumps(answer)) == json.loads(json.dumps(value))
        assert json.dumps(answer, indent=1) == json.dumps(value, indent=1)

    def test_the_quick_writer_writes_it_too(self):
        assert orjson.loads(orjson.dumps(to_answer(VALUE, USERS))) == VALUE

    @pytest.mark.parametrize("value", [None, 5, "text", [1, 2]])
    def test_what_is_no_mapping_is_itself(self, value):
        assert to_answer(value, None) == value

    def test_a_list_holds_records(self):
        (only,) = to_answer([{"name": "Ada"}], None)

        assert (type(only), only.name) == (Record, "Ada")
