"""A reply of a model becomes guarded calls, and their results what the vendor's own types accept."""

import asyncio
import json

import pytest

from toolcrib import Call, Crib, Kind, ToolError, tool
from toolcrib.adapters import Anthropic, OpenAIChat


async def test_every_form_of_a_reply_is_read_alike(shape, crib):
    adapter = shape.adapter(crib)
    for reply in shape.variants(("c1", "add", {"a": 1, "b": 2}), ("c2", "greet", {"name": "Ada"})):
        assert [(call.name, call.arguments) for call in adapter.calls(reply)] == [
            ("add", {"a": 1, "b": 2}),
            ("greet", {"name": "Ada"}),
        ]
        told = shape.read(await adapter.answer(reply))
        assert [(each.id, each.ok, each.value) for each in told] == [("c1", True, 3), ("c2", True, "hello Ada")]


async def test_a_reply_that_asks_for_nothing_is_answered_with_nothing(shape, crib):
    adapter = shape.adapter(crib)
    for reply in (shape.silent(), shape.parse(shape.silent()), shape.wire(), []):
        assert adapter.calls(reply) == []
        assert await adapter.answer(reply) == []


async def test_what_is_no_reply_is_refused_with_what_would_be_one(shape, crib):
    adapter = shape.adapter(crib)
    for thing in (None, "add", 3, {"error": {"message": "overloaded"}}, object()):
        with pytest.raises(ToolError, match=f"^{shape.adapter.__name__} reads a .*, not a {type(thing).__name__} "):
            await adapter.answer(thing)


async def test_definitions_are_what_the_vendor_takes(shape, crib):
    definitions = shape.adapter(crib, tools=["add", "table"]).definitions
    for definition in definitions:
        shape.definition.validate_python(definition)
    functions = definitions[0]["function_declarations"] if shape.adapter.__name__ == "Gemini" else definitions
    assert [function.get("function", function)["name"] for function in functions] == ["add", "table"]


async def test_without_tools_there_are_no_definitions(shape, crib):
    assert shape.adapter(crib, tools=[]).definitions == []


async def test_all_calls_of_a_reply_run_side_by_side(shape, crib_of):
    both = asyncio.Barrier(2)

    @tool
    async def meet(who: str) -> str:
        """Wait for the other one."""
        async with asyncio.timeout(25):
            await both.wait()
        return who

    adapter = shape.adapter(crib_of(meet, builtins={"enabled": False}))
    told = shape.read(await adapter.answer(shape.reply(("1", "meet", {"who": "a"}), ("2", "meet", {"who": "b"}))))
    assert [(each.id, each.value) for each in told] == [("1", "a"), ("2", "b")]


async def test_a_name_that_no_vendor_takes_leads_back_to_its_tool(shape, crib):
    adapter = shape.adapter(crib, tools=["größe_messen"])
    assert "größe" not in str(adapter.definitions)
    (visible,) = adapter._exports
    told = shape.read(await adapter.answer(shape.reply(("1", visible, {"cm": 180}))))
    assert told[0].value == "180 cm"
    told = shape.read(await adapter.answer(shape.reply(("1", "größe_messen", {"cm": 180}))))
    assert told[0].value["type"] == "NOT_FOUND"


async def test_an_error_is_told_in_words_without_what_is_the_hosts_alone(shape, crib):
    adapter = shape.adapter(crib)
    reply = shape.reply(
        ("1", "fail", {"how": "well"}), ("2", "fail", {"how": "badly"}), ("3", "add", {"a": "x", "b": 1})
    )
    well, badly, wrong = shape.read(await adapter.answer(reply))
    assert [well.ok, badly.ok, wrong.ok] == [False, False, False]
    assert well.value == {
        "type": "TRANSIENT",
        "message": "the line is ? busy",
        "retryable": True,
        "partialSideEffects": True,
        "partialValue": {"sent": 2},
    }
    assert badly.value == {
        "type": "INTERNAL",
        "message": "fail failed unexpectedly (ValueError); the log has the details",
        "retryable": False,
        "partialSideEffects": True,
    }
    assert wrong.value["type"] == "VALIDATION"
    assert "a" in wrong.value["message"]
    assert "hunter2" not in str(badly.value)


async def test_a_long_error_is_cut(shape, crib_of):
    @tool
    def shout() -> str:
        """Fail at length."""
        raise ToolError(Kind.PERMANENT, "x" * 1_000_000)

    told = shape.read(
        await shape.adapter(crib_of(shout, builtins={"enabled": False})).answer(shape.reply(("1", "shout", {})))
    )
    assert told[0].value["message"] == "x" * 4_000 + "…"


async def test_a_value_that_is_nothing_is_told_as_nothing(shape, crib):
    told = shape.read(await shape.adapter(crib).answer(shape.reply(("1", "nothing", {}))))
    assert told[0].ok
    assert told[0].value in ("", None)


async def test_of_a_value_that_was_kept_aside_the_head_is_told_and_how_to_read_the_rest(shape, crib_of):
    @tool
    def report() -> str:
        """A long report."""
        return "".join(f"line {number}\n" for number in range(5_000))

    crib = crib_of(report, builtins={"enabled": False}, calls={"result_bytes": 10_000})
    told = shape.read(await shape.adapter(crib, caller="ada").answer(shape.reply(("1", "report", {}))))
    head, _, line = told[0].value.rpartition("\n\n")
    assert head == report()[:2_000]
    handle = line.split('"')[1]
    assert line == (
        f"[These are 2000 of 48890 characters. The rest is stored for an hour: "
        f'crib.read_result("{handle}", offset=2000). Or ask for less.]'
    )
    assert head + crib.read_result(handle, caller="ada", offset=2_000).text == report()


async def test_tools_ask_things_of_the_host_through_its_session(shape, crib_of):
    from toolcrib import Intent
    from toolcrib.model.result import Outcome

    heard = []

    @tool
    def bye() -> Outcome:
        """Say goodbye."""
        return Outcome(value="bye", intents=(Intent(type="SUPPRESS_AUDIO", fields={"value": True}),))

    crib = crib_of(bye, builtins={"enabled": False})
    adapter = shape.adapter(crib, session=crib.session(on_intent=heard.append))
    told = shape.read(await adapter.answer(shape.reply(("1", "bye", {}))))
    assert told[0].value == "bye"
    assert [intent.type for intent in heard] == ["SUPPRESS_AUDIO"]


async def test_calls_are_made_for_the_session_and_its_budget(shape, crib):
    adapter = shape.adapter(crib, session=crib.session(max_calls=1))
    reply = shape.reply(("1", "add", {"a": 1, "b": 2}), ("2", "greet", {"name": "Ada"}))
    told = shape.read(await adapter.answer(reply))
    assert sorted(each.ok for each in told) == [False, True]
    assert [each.value["type"] for each in told if not each.ok] == ["BUDGET_EXCEEDED"]


async def test_calls_are_made_in_the_name_of_the_caller(shape, crib):
    assert {call.caller for call in shape.adapter(crib).calls(shape.reply(("1", "nothing", {})))} == {"local"}
    adapter = shape.adapter(crib, caller="ada")
    await adapter.answer(shape.reply(("1", "nothing", {})))
    assert [line["caller"] for line in crib.journal.read()] == ["ada"]


async def test_a_tool_is_offered_only_in_its_modes_and_called_in_no_other(shape, crib):
    voice = crib.session(mode="voice")
    assert "table" in shape.adapter(crib)._exports
    for adapter in (
        shape.adapter(crib, session=voice),
        shape.adapter(crib, mode="voice"),
        shape.adapter(crib, mode="voice", tools=["table", "add"]),
        shape.adapter(crib, session=crib.session(), mode="voice"),
    ):
        assert "table" not in adapter._exports
        told = shape.read(await adapter.answer(shape.reply(("1", "table", {}), ("2", "add", {"a": 1, "b": 1}))))
        assert [each.value if each.ok else each.value["type"] for each in told] == ["NOT_FOUND", 2]


async def test_calls_are_made_in_the_mode_of_the_chat(shape, crib):
    reply = shape.reply(("1", "add", {"a": 1, "b": 2}))
    voice = crib.session(mode="voice")
    assert [call.mode for call in shape.adapter(crib, mode="voice").calls(reply)] == ["voice"]
    assert [call.mode for call in shape.adapter(crib, session=voice).calls(reply)] == ["voice"]
    assert [call.mode for call in shape.adapter(crib, session=voice, mode="text").calls(reply)] == ["text"]
    assert [call.mode for call in shape.adapter(crib).calls(reply)] == ["text"]


async def test_a_mode_that_there_is_not_is_refused_at_once(crib):
    with pytest.raises(ToolError, match="there is no mode 'sms'; use text or voice"):
        OpenAIChat(crib, mode="sms")


async def test_a_tool_that_is_switched_off_is_not_offered(shape, crib_of, bench):
    crib = crib_of(*bench.tools(), builtins={"enabled": False}, catalog={"disabled": ["add"]})
    for adapter in (shape.adapter(crib), shape.adapter(crib, tools=["add", "greet"])):
        assert "add" not in adapter._exports
        told = shape.read(await adapter.answer(shape.reply(("1", "add", {"a": 1, "b": 2}))))
        assert told[0].value["type"] == "NOT_FOUND"
    assert bench.done == []


async def test_unknown_names_are_refused_with_the_near_ones(crib):
    with pytest.raises(ToolError, match=r"Tool 'ad' not found; did you mean add\?"):
        OpenAIChat(crib, tools=["ad"])
    with pytest.raises(ToolError, match=r"write tools=\['add'\]"):
        OpenAIChat(crib, tools="add")


async def test_an_address_offers_a_tool_whose_name_means_another(crib_of):
    @tool(name="add", bundle="first")
    def first(a: int) -> str:
        """The one that the name means."""
        return "first"

    @tool(name="add", bundle="second")
    def second(a: int) -> str:
        """The one that only its address means."""
        return "second"

    crib = crib_of(first, second, builtins={"enabled": False})
    reply = [{"id": "1", "function": {"name": "add", "arguments": '{"a": 1}'}}]
    assert (await OpenAIChat(crib).answer(reply))[0]["content"] == "first"
    assert (await OpenAIChat(crib, tools=["second/add"]).answer(reply))[0]["content"] == "second"


async def test_the_set_of_tools_stays_until_it_is_refreshed(shape, crib):
    adapter = shape.adapter(crib)

    @tool
    def late() -> str:
        """Come late."""
        return "here"

    crib.add(late)
    assert shape.read(await adapter.answer(shape.reply(("1", "late", {}))))[0].value["type"] == "NOT_FOUND"
    assert "late" not in str(adapter.definitions)
    adapter.refresh()
    assert "late" in str(adapter.definitions)
    assert shape.read(await adapter.answer(shape.reply(("1", "late", {}))))[0].value == "here"


async def test_a_tool_that_is_gone_since_it_was_offered_is_answered_in_words(shape, tmp_path, crib_of):
    (tmp_path / "tools").mkdir()
    file = tmp_path / "tools" / "word.py"
    file.write_text('def word() -> str:\n    """A word."""\n    return "w"\n')
    adapter = shape.adapter(crib_of(project=tmp_path, builtins={"enabled": False}), tools=["word"])
    file.unlink()
    told = shape.read(await adapter.answer(shape.reply(("1", "word", {}))))
    assert told[0].value["type"] == "NOT_FOUND"


async def test_what_strict_mode_made_of_optional_arguments_is_undone(text_shape, crib):
    adapter = text_shape.adapter(crib, tools=["greet"], strict=True)
    assert '"strict": true' in json.dumps(adapter.definitions)
    reply = text_shape.reply(
        ("1", "greet", {"name": "Ada", "loud": None}), ("2", "greet", {"name": "Ada", "loud": True})
    )
    told = text_shape.read(await adapter.answer(reply))
    assert [each.value for each in told] == ["hello Ada", "HELLO ADA"]


async def test_losses_are_told_by_the_name_of_the_tool(shapes, crib_of):
    @tool(parameters={"type": "object", "properties": {"word": {"not": {"type": "string"}}}})
    def odd(word: object = None) -> str:
        """Take anything but a text."""
        return "odd"

    crib = crib_of(odd, builtins={"enabled": False})
    losses = shapes["gemini"].adapter(crib).losses
    assert list(losses) == ["odd"]
    assert "not" in {loss.keyword for loss in losses["odd"]}
    assert shapes["anthropic"].adapter(crib).losses == {}


def test_plain_code_gets_its_answers_too(shape, bench):
    with Crib(tools=bench.tools(), builtins={"enabled": False}) as crib:
        adapter = shape.adapter(crib)
        for _ in range(2):
            told = shape.read(adapter.answer_sync(shape.reply(("1", "add", {"a": 1, "b": 2}))))
            assert told[0].value == 3
        assert crib.call_sync("add", a=1, b=1).value == 2


async def test_plain_code_inside_a_loop_is_told_to_wait(crib):
    with pytest.raises(RuntimeError, match="inside a running event loop"):
        Anthropic(crib).answer_sync([])


async def test_calls_can_be_made_by_hand(shape, crib):
    (call,) = shape.adapter(crib).calls(shape.reply(("1", "add", {"a": 1, "b": 2})))
    assert isinstance(call, Call)
    assert (await crib.call(call)).value == 3
