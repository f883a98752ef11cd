"""What a person sees before approving: the very bytes that will run, and an approval that holds for nothing else."""

import hashlib
import json
import os
import py_compile
import re
import shutil
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from sql_shop import BUNDLE, document, make_shop

from sample_tools import http_call, http_run
from toolcrib import ALLOW, Call, Crib, Kind, Tool, ToolError, confirm, tool
from toolcrib.features.approvals.commands import show_part
from toolcrib.features.approvals.run_parts import MAX_FACTS, MAX_PART_BYTES, preview_call, show_parts
from toolcrib.infra.programs.code_parts import MAX_FILE_BYTES, MAX_FILES, MAX_LOOKED_AT
from toolcrib.lib.run_part import PartKind, RunPart

REPOSITORY = Path(__file__).parents[3]
PAY = '''"""Pay."""
from toolcrib import tool

@tool(confirm=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"
'''


class AskAboutEverything:
    """Has every call confirmed."""

    name = "ask"

    def concerns(self, tool):
        return True

    def __call__(self, tool, call):
        return ALLOW if call.arguments.get("unasked") else confirm("it is tried", rule=self.name)


def call(name, **arguments):
    return Call(name=name, arguments=arguments, caller="mcp:local", consent="person")


async def ask(crib, name, **arguments):
    """The approval of a call that waits for a person."""
    result = await crib.call(call(name, **arguments))
    assert result.error is not None
    assert result.error.kind is Kind.CONFIRMATION_REQUIRED, result.error
    return crib.approvals.show(result.error.details["approval"])


def facts_of(part):
    return {fact["name"]: fact["value"] for fact in part["facts"]}


def write(root, path, text):
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


async def test_the_code_of_a_file_is_shown_and_an_edit_of_it_needs_a_fresh_approval(tmp_path):
    file = write(tmp_path, "tools/pay.py", PAY)
    async with Crib(tmp_path) as crib:
        first = await ask(crib, "pay", amount=5)
        [part] = first.runs
        assert (part["kind"], part["title"], part["text"], part["exact"]) == ("code", "tools/pay.py", PAY, True)
        assert (part["bytes"], part["sha256"]) == (len(PAY), hashlib.sha256(PAY.encode()).hexdigest())
        crib.approvals.approve(first.id, by="ann")
        changed = PAY.replace("paid", "transferred")
        file.write_text(changed)
        second = await ask(crib, "pay", amount=5)
        assert second.id != first.id
        assert [part["text"] for part in second.runs] == [changed]
        crib.approvals.approve(second.id, by="ann")
        assert (await crib.call(call("pay", amount=5))).value == "transferred 5"


async def test_a_file_beside_a_script_that_it_imports_is_shown_and_bound(tmp_path):
    write(tmp_path, "tools/pay.py", PAY.replace('"""Pay."""\nfrom', '"""Pay."""\nimport rates\nfrom'))
    beside = write(tmp_path, "tools/rates.py", "RATE = 1\n")
    async with Crib(tmp_path) as crib:
        approval = await ask(crib, "pay", amount=5)
        assert [part["title"] for part in approval.runs] == ["tools/pay.py", "tools/rates.py"]
        assert approval.runs[1]["text"] == "RATE = 1\n"
        assert "are not part of this approval" in approval.runs[0]["note"]
        crib.approvals.approve(approval.id, by="ann")
        beside.write_text("RATE = 100\n")
        again = await ask(crib, "pay", amount=5)
        assert again.runs[1]["text"] == "RATE = 100\n"


async def test_a_command_its_files_and_its_executor_are_shown_and_an_edit_of_either_needs_a_fresh_approval(tmp_path):
    shutil.copytree(REPOSITORY / "examples/scripts/.ai", tmp_path / ".ai")
    folder = tmp_path / ".ai/tools"
    grants = {"project/*": ["shell.execute"]}
    async with Crib(tmp_path, rules=[AskAboutEverything()], grants=grants) as crib:
        command, code = (await ask(crib, "longest-line", file="a.txt")).runs
        assert (command["kind"], code["kind"]) == ("command", "code")
        assert command["text"].endswith("longest-line.sh --file a.txt")
        assert code["text"] == (folder / "text/longest-line.sh").read_text()

        first = await ask(crib, "fibonacci", position=3)
        assert [part["kind"] for part in first.runs] == ["command", "code", "settings"]
        assert first.runs[0]["text"].endswith("-v n=3 -f fibonacci.awk")
        assert first.runs[1]["text"] == (folder / "numbers/fibonacci.awk").read_text()
        assert json.loads(first.runs[2]["text"]) == {"command": "awk"}
        seen = {first.id}
        for path in (folder / "numbers/fibonacci.awk", folder / "runtimes/awk_runtime.yaml"):
            path.write_text(path.read_text().replace("command: awk", "command: gawk") + "\n# changed\n")
            again = await ask(crib, "fibonacci", position=3)
            assert again.id not in seen, path.name
            seen.add(again.id)


def test_the_handler_of_a_folder_is_shown_first_with_all_files_of_the_folder(tmp_path, cli):
    shutil.copytree(REPOSITORY / "examples/folders/tools", tmp_path / "tools")
    write(tmp_path, "toolcrib.toml", "")
    folder = tmp_path / "tools/refund-order"
    (folder / "logo.bin").write_bytes(b"\x00\xff\x01")
    assert cli("build", "-C", str(tmp_path)).code == 0
    with Crib(tmp_path, rules=[AskAboutEverything()]) as crib:
        asked = crib.call_sync(call("refund_order", order_id="A-1", amount=3))
        assert asked.error.kind is Kind.CONFIRMATION_REQUIRED, asked.error
        parts = crib.approvals.show(asked.error.details["approval"]).runs
        assert (parts[0]["title"], parts[0]["text"]) == ("refund-order/handler.py", (folder / "handler.py").read_text())
        by_title = {part["title"]: part for part in parts}
        assert by_title["refund-order/schema.json"]["text"] == (folder / "schema.json").read_text()
        assert (by_title["refund-order/logo.bin"]["text"], by_title["refund-order/logo.bin"]["bytes"]) == (None, 3)


def http_tool(*calls, **properties):
    parameters = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "additionalProperties": False,
    }
    return Tool(
        name="book",
        description="Book a room.",
        parameters=parameters,
        run=http_run(*calls),
        requires_confirmation=True,
        requires=frozenset({"net.http"}),
    )


async def test_the_first_request_is_shown_as_it_will_be_sent_and_later_ones_as_templates(crib_of):
    made = http_tool(
        http_call(
            name="room",
            method="POST",
            url="https://rooms.test/v1/${city}?token=literal-token",
            query={"day": "${day}"},
            headers={"X-Trace": "${platform:request_id}", "Authorization": "Bearer ${secret:ROOMS}"},
            body={"guest": "${guest}", "api_key": "written-out", "at": "${now}"},
        ),
        http_call(
            url="https://rooms.test/pay/${room.id}",
            method="POST",
            body={"room": "${room.id}", "for": "${guest}"},
            auth={"type": "bearer", "token": "${secret:ROOMS}"},
        ),
        city="string",
        day="string",
        guest="string",
    )
    crib = crib_of(
        made,
        http_tools={"hosts": ["rooms.test"]},
        secrets={"environment": ["ROOMS"]},
        environment={"ROOMS": "sk-very-secret-1"},
    )
    approval = await ask(crib, "book", city="São Paulo", day="2026-01-02", guest='Ann "A"')
    first, second = approval.runs
    assert first["title"] == "POST https://rooms.test/v1/S%C3%A3o%20Paulo?token=(hidden)&day=2026-01-02"
    assert facts_of(first) == {
        "header X-Trace": "{request_id}",
        "header Authorization": "Bearer {secret:ROOMS}",
        "header Content-Type": "application/json",
    }
    assert json.loads(first["text"]) == {"guest": 'Ann "A"', "api_key": "(hidden)", "at": "{now}"}
    assert first["exact"] is True
    assert second["title"] == "POST https://rooms.test/pay/{room.id}"
    assert json.loads(second["text"]) == {"room": "{room.id}", "for": 'Ann "A"'}
    assert facts_of(second)["auth token"] == "{secret:ROOMS}"
    assert (second["exact"], "answers of earlier requests" in second["note"]) == (False, True)
    assert "sk-very-secret-1" not in json.dumps(approval.to_json())


async def test_an_approved_request_is_found_again_and_another_one_is_not(crib_of):
    made = http_tool(http_call(url="https://rooms.test/${city}", headers={"X-Key": "${secret:ROOMS}"}), city="string")
    crib = crib_of(
        made,
        http_tools={"hosts": ["rooms.test"]},
        secrets={"environment": ["ROOMS"]},
        environment={"ROOMS": "sk-secret-2"},
    )
    approval = await ask(crib, "book", city="Rome")
    crib.approvals.approve(approval.id, by="ann")
    found = crib.approvals.show(approval.id)
    assert found.state == "approved"
    other = await ask(crib, "book", city="Oslo")
    assert other.digest != approval.digest
    explained = crib.explain(call("book", city="Rome"))
    assert explained.allowed


async def test_an_argument_named_like_a_secret_is_hidden_in_what_would_run(crib_of):
    made = http_tool(
        http_call(url="https://rooms.test/x", method="POST", body={"password": "${password}"}), password="string"
    )
    crib = crib_of(made, http_tools={"hosts": ["rooms.test"]})
    approval = await ask(crib, "book", password="correct horse battery")
    assert "correct horse" not in json.dumps(approval.to_json())


async def test_a_statement_is_shown_with_the_value_of_each_place(tmp_path):
    make_shop(tmp_path / "shop.sqlite")
    async with Crib(tmp_path) as crib:
        crib.bundles.put_bundle(BUNDLE, {"slug": "shop", "displayName": "Shop", "isEnabled": True})
        statement = "UPDATE customers SET credit = :credit WHERE name = :who"
        arguments = {"credit": {"type": "number"}, "who": {"type": "string"}}
        crib.bundles.put_tool(BUNDLE, "set-credit", "v1", document(statement, arguments, write=True))
        [part] = (await ask(crib, "set-credit", who="o'neil", credit=3)).runs
        assert (part["kind"], part["text"]) == ("statement", "UPDATE customers SET credit = ?1 WHERE name = ?2")
        assert facts_of(part) == {
            "database": "shop.sqlite",
            "effect": "may change the database",
            "1: credit": "3",
            "2: who": '"o\'neil"',
        }


async def test_a_function_of_the_host_is_shown_with_where_it_runs(crib_of):
    @tool(confirm=True)
    def launch(target: str) -> str:
        """Launch."""
        return target

    approval = await ask(crib_of(launch), "launch", target="moon")
    [part] = approval.runs
    assert "return target" in part["text"]
    assert facts_of(part)["runs in"] == "the process of the host program, outside the sandbox"
    assert Path(__file__).name in facts_of(part)["written in"]


async def test_a_function_without_a_text_says_so(crib_of):
    scope = {}
    exec("def made(amount: int) -> int:\n    'Made.'\n    return amount", scope)
    approval = await ask(crib_of(tool(scope["made"], confirm=True)), "made", amount=1)
    [part] = approval.runs
    assert part["text"] is None
    assert "cannot be read" in part["note"]


async def test_of_a_large_file_the_beginning_is_shown_and_size_and_hash_of_all(tmp_path):
    large = PAY + "# é\n" * MAX_PART_BYTES
    write(tmp_path, "tools/pay.py", large)
    async with Crib(tmp_path) as crib:
        [part] = (await ask(crib, "pay", amount=1)).runs
        data = large.encode()
        assert (part["bytes"], part["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        assert MAX_PART_BYTES - 4 < part["shownBytes"] <= MAX_PART_BYTES
        assert data[: part["shownBytes"]].decode() == part["text"]


async def test_the_end_of_a_large_file_counts_as_well(tmp_path):
    file = write(tmp_path, "tools/pay.py", PAY + "# x\n" * MAX_PART_BYTES)
    async with Crib(tmp_path) as crib:
        first = await ask(crib, "pay", amount=1)
        crib.approvals.approve(first.id, by="ann")
        file.write_text(file.read_text() + "# y\n")
        assert (await ask(crib, "pay", amount=1)).id != first.id


async def test_a_stored_secret_in_the_code_is_masked(tmp_path):
    write(tmp_path, "tools/pay.py", PAY + '\nKEY = "hush-hush-1234"\n')
    settings = {"secrets": {"environment": ["KEY"]}, "environment": {"KEY": "hush-hush-1234"}}
    async with Crib(tmp_path, **settings) as crib:
        [part] = (await ask(crib, "pay", amount=1)).runs
        assert "hush-hush" not in part["text"]


async def test_a_call_whose_parts_were_altered_cannot_be_approved(tmp_path):
    write(tmp_path, "tools/pay.py", PAY)
    async with Crib(tmp_path) as crib:
        approval = await ask(crib, "pay", amount=1)
        [stored] = (tmp_path / ".toolcrib").rglob(f"runs/{approval.id}.json")
        stored.write_text(stored.read_text().replace("paid", "kept"))
        assert crib.approvals.show(approval.id).runs is None
        with pytest.raises(ToolError, match="was not stored by this project"):
            crib.approvals.approve(approval.id, by="ann")
        assert crib.approvals.refuse(approval.id, by="ann").state == "refused"


async def test_a_list_does_not_carry_what_would_run(tmp_path):
    write(tmp_path, "tools/pay.py", PAY)
    async with Crib(tmp_path) as crib:
        approval = await ask(crib, "pay", amount=1)
        [listed] = crib.approvals.list()
        assert (listed.id, listed.runs) == (approval.id, None)
        assert "runs" not in listed.to_json()


def test_the_command_line_writes_hidden_characters_out(tmp_path, cli):
    write(tmp_path, "toolcrib.toml", "")
    write(tmp_path, "tools/pay.py", PAY + "# \u202e\x1b[31mred\n")
    with Crib(tmp_path) as crib:
        asked = crib.call_sync(call("pay", amount=1))
        approval = crib.approvals.show(asked.error.details["approval"])
    shown = cli("approvals", "show", approval.id, "-C", str(tmp_path))
    assert shown.code == 0
    out = shown.out
    assert "code: tools/pay.py" in out
    assert 'return f"paid {amount}"' in out
    assert approval.runs[0]["sha256"] in out
    assert "\x1b" not in out
    assert "\u202e" not in out


RATES = PAY.replace('"""Pay."""\nfrom', '"""Pay."""\nimport rates\nfrom').replace("{amount}", "{amount} {rates.RATE}")


def compile_to(place, text):
    """Bytecode that Python runs without a look at the source."""
    source = write(place.parent, "source.txt", text)
    place.parent.mkdir(parents=True, exist_ok=True)
    py_compile.compile(str(source), cfile=str(place), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)


@pytest.mark.parametrize(
    "replace_module",
    [
        lambda tools: write(tools, "rates/__init__.py", "RATE = 100\n"),
        lambda tools: compile_to(Path(cache_from_source(str(tools / "rates.py"))), "RATE = 100\n"),
    ],
    ids=["package", "bytecode"],
)
async def test_what_python_takes_in_place_of_an_imported_file_needs_a_fresh_approval(tmp_path, replace_module):
    write(tmp_path, "tools/pay.py", RATES)
    write(tmp_path, "tools/rates.py", "import random\nRATE = 1\n")
    async with Crib(tmp_path) as crib:
        approval = await ask(crib, "pay", amount=5)
        crib.approvals.approve(approval.id, by="ann")
        replace_module(tmp_path / "tools")
        assert (await ask(crib, "pay", amount=5)).id != approval.id


@pytest.mark.parametrize("is_first", [False, True])
async def test_a_file_called_like_a_module_of_python_is_shown_only_where_the_code_puts_its_folder_first(
    tmp_path, is_first
):
    first = "import sys\nsys.path.insert(0, __file__.rpartition('/')[0])\n" if is_first else ""
    write(tmp_path, "tools/pay.py", RATES)
    write(tmp_path, "tools/rates.py", f"{first}import colorsys\nRATE = getattr(colorsys, 'RATE', 1)\n")
    write(tmp_path, "tools/colorsys.py", "RATE = 100\n")
    async with Crib(tmp_path) as crib:
        approval = await ask(crib, "pay", amount=5)
        titles = [part["title"] for part in approval.runs]
        assert titles == ["tools/pay.py", "tools/rates.py", *(["tools/colorsys.py"] if is_first else [])]
        crib.approvals.approve(approval.id, by="ann")
        result = await crib.call(call("pay", amount=5))
    assert result.value == ("paid 5 100" if is_first else "paid 5 1")


async def test_a_module_that_is_bytecode_alone_is_named_with_its_hash(tmp_path):
    write(tmp_path, "tools/pay.py", RATES)
    compile_to(tmp_path / "tools/rates.pyc", "RATE = 100\n")
    async with Crib(tmp_path) as crib:
        part = (await ask(crib, "pay", amount=5)).runs[1]
    data = (tmp_path / "tools/rates.pyc").read_bytes()
    assert (part["title"], part["text"], part["sha256"]) == ("tools/rates.pyc", None, hashlib.sha256(data).hexdigest())
    assert "bytecode" in part["note"]


async def test_files_of_a_large_package_that_are_not_shown_are_bound_as_well(tmp_path):
    write(tmp_path, "tools/pay.py", RATES)
    write(tmp_path, "tools/rates/__init__.py", "from rates.last import RATE\n")
    for number in range(MAX_FILES):
        write(tmp_path, f"tools/rates/deep/a{number}.py", "")
    last = write(tmp_path, "tools/rates/deep/z.json", "1")
    async with Crib(tmp_path) as crib:
        approval = await ask(crib, "pay", amount=5)
        assert "tools/rates/deep/z.json" in facts_of(approval.runs[-1])["files"]
        crib.approvals.approve(approval.id, by="ann")
        last.write_text("22")
        assert (await ask(crib, "pay", amount=5)).id != approval.id


async def test_the_end_of_an_imported_file_that_is_too_large_to_be_read_counts_as_well(tmp_path):
    write(tmp_path, "tools/pay.py", RATES)
    beside = write(tmp_path, "tools/rates.py", "RATE = 1\n" + "#" * MAX_FILE_BYTES)
    async with Crib(tmp_path) as crib:
        first = await ask(crib, "pay", amount=5)
        assert (first.runs[1]["text"], "is not shown" in first.runs[1]["note"]) == (None, True)
        crib.approvals.approve(first.id, by="ann")
        with beside.open("a") as file:
            file.write("\nRATE = 100\n")
        assert (await ask(crib, "pay", amount=5)).id != first.id


async def test_a_link_out_of_the_folder_does_not_show_the_file_there(tmp_path):
    write(tmp_path, "tools/pay.py", RATES)
    private = write(tmp_path, "private.py", "RATE = 'do-not-show'\n")
    (tmp_path / "tools/rates.py").symlink_to(private)
    async with Crib(tmp_path) as crib:
        first = await ask(crib, "pay", amount=5)
        assert first.runs[1]["title"] == "tools/rates.py"
        assert "do-not-show" not in json.dumps(first.to_json())
        private.write_text("RATE = 'another'\n")
        assert (await ask(crib, "pay", amount=5)).id != first.id


@pytest.mark.parametrize("path", ["../../secret.txt", "./.env"])
async def test_a_script_cannot_show_files_elsewhere_or_hidden_ones_by_naming_them(tmp_path, path):
    shutil.copytree(REPOSITORY / "examples/scripts/.ai", tmp_path / ".ai")
    script = tmp_path / ".ai/tools/text/longest-line.sh"
    script.write_text(f"{script.read_text()}\n. {path}\n")
    write(script.parent, path, "WORD=do-not-show\n")
    async with Crib(tmp_path, rules=[AskAboutEverything()], grants={"project/*": ["shell.execute"]}) as crib:
        approval = await ask(crib, "longest-line", file="a.txt")
    assert [part["title"] for part in approval.runs][-1] == Path(path).name
    assert "do-not-show" not in json.dumps(approval.to_json())


async def test_many_files_and_a_folder_in_itself_are_looked_at_up_to_a_bound(tmp_path):
    write(tmp_path, "tools/pay.py", RATES)
    for number in range(MAX_LOOKED_AT + 10):
        (tmp_path / f"tools/rates/{number % 7}").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"tools/rates/{number % 7}/f{number}.py").touch()
    (tmp_path / "tools/rates/self").symlink_to(".")
    async with Crib(tmp_path) as crib:
        parts = (await ask(crib, "pay", amount=5)).runs
    assert len(parts) <= MAX_FILES + 3
    assert "are not part of this approval" in parts[-1]["note"]


async def test_a_program_of_an_executor_is_shown_and_bound_and_long_words_are_no_files(tmp_path):
    folder = tmp_path / ".ai/tools"
    shutil.copytree(REPOSITORY / "examples/scripts/.ai", tmp_path / ".ai")
    runtime = folder / "runtimes/awk_runtime.yaml"
    runtime.write_text(runtime.read_text().replace("command: awk", "command: ./run.sh"))
    program = write(folder, "runtimes/run.sh", "#!/bin/sh\necho 1\n")
    program.chmod(0o755)
    async with Crib(tmp_path, rules=[AskAboutEverything()], grants={"project/*": ["shell.execute"]}) as crib:
        first = await ask(crib, "fibonacci", position=3)
        assert [part["text"] for part in first.runs if part["title"] == "run.sh"] == [program.read_text()]
        program.write_text("#!/bin/sh\necho 2\n")
        assert (await ask(crib, "fibonacci", position=3)).id != first.id
        assert (await ask(crib, "longest-line", file="x" * 300)).runs[0]["text"].endswith("x" * 300)


async def test_a_function_whose_file_changed_since_it_was_loaded_is_not_shown_with_the_new_text(tmp_path, crib_of):
    text = "def launch(target: str) -> str:\n    'Launch.'\n    return 'old ' + target\n"
    file = write(tmp_path, "launches.py", text)
    scope = {"__name__": "launches"}
    exec(compile(text, str(file), "exec"), scope)
    crib = crib_of(tool(scope["launch"], confirm=True))
    file.write_text(text.replace("old", "new"))
    [part] = (await ask(crib, "launch", target="moon")).runs
    assert part["text"] is None
    assert "was changed" in part["note"]


async def test_a_long_url_says_that_its_end_is_not_shown(crib_of):
    made = http_tool(http_call(url="https://rooms.test/x?q=${city}"), city="string")
    crib = crib_of(made, http_tools={"hosts": ["rooms.test"]})
    [part] = (await ask(crib, "book", city="a" * 5_000 + "&evil=1")).runs
    assert re.search(r" … \([0-9]+ letters, SHA-256 [0-9a-f]{64}\)$", part["title"])


class BreaksOff:
    """Describes a part of its call."""

    def preview(self, arguments, call):
        yield RunPart(kind=PartKind.CODE, title="first", data=b"shown")
        raise ToolError(Kind.VALIDATION, "the rest is missing")


def test_what_was_described_before_a_refusal_is_shown_and_bound():
    made = http_tool(http_call(url="https://rooms.test/x"))
    parts = preview_call(made, BreaksOff(), {}, call("made"))
    assert [part.title for part in parts] == ["first", made.address]
    assert "the rest is missing" in parts[1].note


def test_more_facts_than_are_shown_are_told_by_a_hash():
    facts = tuple((f"header {number}", "x") for number in range(MAX_FACTS + 5))
    [shown] = show_parts([RunPart(kind=PartKind.REQUEST, title="GET", facts=facts)], lambda value: value)
    assert len(shown["facts"]) == MAX_FACTS + 1
    assert shown["facts"][-1]["name"] == "5 more"


def test_the_command_line_shows_every_blank_and_line_break_of_a_fact(tmp_path, cli):
    make_shop(tmp_path / "shop.sqlite")
    write(tmp_path, "toolcrib.toml", "")
    with Crib(tmp_path) as crib:
        crib.bundles.put_bundle(BUNDLE, {"slug": "shop", "displayName": "Shop", "isEnabled": True})
        statement = "UPDATE customers SET credit = 0 WHERE name = :who"
        crib.bundles.put_tool(BUNDLE, "set-credit", "v1", document(statement, {"who": {"type": "string"}}, write=True))
        asked = crib.call_sync(call("set-credit", who="o  neil\x1b"))
    shown = cli("approvals", "show", asked.error.details["approval"], "-C", str(tmp_path))
    assert shown.code == 0
    assert '1: who: "o  neil\\u001b"' in shown.out


def test_facts_of_several_lines_stay_on_theirs(capsys):
    facts = (("header X", "one\ncode: forged"), ("name\x1b[31m", "x"))
    [shown] = show_parts([RunPart(kind=PartKind.REQUEST, title="GET a\nb", facts=facts)], lambda value: value)
    show_part(shown)
    lines = capsys.readouterr().out.splitlines()
    assert "request: GET a\\nb" in lines
    assert "header X: one\\ncode: forged" in lines
    assert not any("\x1b" in line for line in lines)


async def test_a_shell_command_is_shown_as_it_is_with_the_files_that_it_names_and_what_they_import(tmp_path):
    write(tmp_path, "deploy.sh", ". ./lib/paths.sh\necho old\n")
    write(tmp_path, "lib/paths.sh", "TARGET=/srv\n")
    write(tmp_path, "sub/report.py", "import rows\n")
    write(tmp_path, "sub/rows.py", "ROWS = 1\n")
    # The interpreter takes it for its own module, whoever imports that.
    write(tmp_path, "sub/json.py", "")
    grants = {"shell": ["shell.execute"]}
    async with Crib(tmp_path, rules=[AskAboutEverything()], grants=grants) as crib:
        command = 'sh dep"loy".sh; for d in other ~/sub; do (cd $d && python3 report.py); done'
        parts = (await ask(crib, "shell", command=command)).runs
        assert (parts[0]["kind"], parts[0]["text"]) == ("command", command)
        assert facts_of(parts[0]) == {"runs in": "the sandbox", "folder": "."}
        titles = ["deploy.sh", "lib/paths.sh", "sub/report.py", "sub/json.py", "sub/rows.py"]
        assert [part["title"] for part in parts[1:]] == titles
        assert parts[1]["text"] == ". ./lib/paths.sh\necho old\n"


async def test_a_shell_command_is_approved_anew_when_a_file_that_it_names_was_replaced(tmp_path):
    deploy = write(tmp_path, "deploy.sh", "echo old\n")
    async with Crib(tmp_path, rules=[AskAboutEverything()], grants={"shell": ["shell.execute"]}) as crib:
        first = await ask(crib, "shell", command="f=~/deploy.sh; sh $f")
        crib.approvals.approve(first.id, by="ann")
        deploy.write_text("echo new\n")
        second = await ask(crib, "shell", command="f=~/deploy.sh; sh $f")
        assert [part["text"] for part in second.runs][1:] == ["echo new\n"]
        crib.approvals.approve(second.id, by="ann")
        ran = await crib.call(call("shell", command="f=~/deploy.sh; sh $f"))
        assert ran.value["stdout"] == "new\n"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        pytest.param("deploy.sh", f"sh {'./' * 1_500}deploy.sh", id="a long path"),
        pytest.param("a/deploy.sh", "cd a/link/.. && sh deploy.sh", id="cd goes back over a link"),
        pytest.param("b/deploy.sh", "sh a/link/../deploy.sh", id="the system goes up from where the link leads"),
        pytest.param("a/deploy.py", "cd a && python3 -m deploy", id="a module that Python runs"),
    ],
)
async def test_a_shell_command_is_asked_about_anew_however_it_names_the_file_that_was_replaced(tmp_path, name, command):
    file = write(tmp_path, name, "x=1\n")
    for folder in ("a", "b/c"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "a" / "link").symlink_to("../b/c")
    async with Crib(tmp_path, rules=[AskAboutEverything()], grants={"shell": ["shell.execute"]}) as crib:
        first = await ask(crib, "shell", command=command)
        file.write_text("x=2\n")
        assert [part["text"] for part in (await ask(crib, "shell", command=command)).runs[1:]] == ["x=2\n"]
        assert [part["text"] for part in crib.approvals.show(first.id).runs[1:]] == ["x=1\n"]


async def test_a_link_out_of_the_workspace_is_bound_to_where_it_leads(tmp_path):
    link = tmp_path / "tool"
    link.symlink_to("/usr/bin/true")
    async with Crib(tmp_path, rules=[AskAboutEverything()], grants={"shell": ["shell.execute"]}) as crib:
        first = await ask(crib, "shell", command="./tool")
        assert [(part["title"], part["text"]) for part in first.runs[1:]] == [("tool", None)]
        link.unlink()
        link.symlink_to("/bin/sh")
        assert (await ask(crib, "shell", command="./tool")).id != first.id


async def test_a_command_of_very_many_words_is_looked_at_in_bounded_work(tmp_path, monkeypatch):
    folders = [f"f{number}" for number in range(MAX_FILES)]
    for folder in folders:
        (tmp_path / folder).mkdir()
    looked, real = [], os.path.realpath
    async with Crib(tmp_path, rules=[AskAboutEverything()], grants={"shell": ["shell.execute"]}) as crib:
        monkeypatch.setattr(os.path, "realpath", lambda *path, **more: looked.append(path) or real(*path, **more))
        found = await ask(crib, "shell", command=" ".join(("ls", *folders, *map(str, range(3_000)))))
    assert any("More than 2,000 files" in part["note"] for part in found.runs)
    assert len(looked) < 10_000


async def test_an_approval_says_which_files_of_a_shell_command_it_does_not_bind(tmp_path):
    write(tmp_path, "a.sh", "echo a\n")
    async with Crib(tmp_path, rules=[AskAboutEverything()], grants={"shell": ["shell.execute"]}) as crib:
        for number in range(MAX_FILES):
            (tmp_path / str(number)).mkdir()
        for command in ("sh *.sh", "sh $(cat name)", " ".join(("ls", *map(str, range(MAX_FILES))))):
            notes = [part["note"] for part in (await ask(crib, "shell", command=command)).runs]
            assert any("Only the shell knows" in note for note in notes), command
        outside = (await ask(crib, "shell", command="cat /etc/hostname", cwd="..")).runs
        assert "outside the workspace" in outside[0]["note"]
