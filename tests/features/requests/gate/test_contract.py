"""What a request asks for follows from the request alone: which calls have to be answered, and which refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_requests import allowance_of
from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.document.writer import write_request
from toolcrib.features.requests.gate import MAX_ACCEPTED, derive_contract
from toolcrib.features.requests.gate.judge import refuse_beyond
from toolcrib.lib.schema import compile_schema


def inputs_of(*types, **more):
    return [
        {"name": f"input_{number}", "type": type_, "description": "An input", **more}
        for number, type_ in enumerate(types)
    ]


def bare(wanted, **fields):
    return wanted(example_usage=None, **fields)


def values(contract, name):
    return [sample.arguments.get(name, "left out") for sample in contract.accepted]


def test_the_calls_are_those_of_the_template_of_the_document(template):
    contract = derive_contract(template)
    assert (contract.file, contract.function) == ("github_stargazer_scraper.py", "scrape_stargazers")
    assert contract.least.arguments == {"repo": "anthropics/claude"}
    assert contract.filled.arguments == {"repo": "anthropics/claude", "limit": 100, "include_email": True}
    assert [(sample.about, sample.arguments) for sample in contract.accepted if sample.plain] == [
        ("only what is required", {"repo": "anthropics/claude"}),
        ("every input given", {"repo": "anthropics/claude", "limit": 100, "include_email": True}),
        ("the call of example_usage", {"repo": "anthropics/claude", "limit": 100}),
    ]
    assert False in values(contract, "include_email")


@pytest.mark.spec("S0-20")
@pytest.mark.parametrize(
    ("type_", "wrong"),
    [
        ("integer", [3.5, True, "true", "text", ["text"], {"key": "value"}, None]),
        ("boolean", [3.5, "true", 7, "text", ["text"], {"key": "value"}, None]),
        ("string", [3.5, True, 7, ["text"], {"key": "value"}, None]),
        ("list", [3.5, True, "true", 7, "text", {"key": "value"}, None]),
        ("object", [3.5, True, "true", 7, "text", ["text"], None]),
    ],
)
def test_every_value_of_another_type_has_to_be_refused(type_, wrong, wanted):
    contract = derive_contract(bare(wanted, inputs=inputs_of(type_)))
    about = [sample for sample in contract.refused if "no_such_input" not in sample.arguments]
    assert [sample.arguments["input_0"] for sample in about] == wrong


def test_leaving_out_what_is_required_and_giving_what_is_not_declared_has_to_be_refused(wanted):
    contract = derive_contract(bare(wanted, inputs=inputs_of("string", required=True)))
    assert next(sample.about for sample in contract.refused) == "without input_0"
    assert contract.refused[0].arguments == {}
    assert contract.refused[-1].arguments == {"input_0": "example", "no_such_input": "value"}


def test_text_is_tried_empty_long_and_foreign_and_numbers_at_zero_below_it_and_large(wanted):
    contract = derive_contract(bare(wanted, inputs=inputs_of("string", "integer", required=True)))
    texts, numbers = values(contract, "input_0"), values(contract, "input_1")
    assert "" in texts
    assert max(map(len, texts)) > 4_000
    assert any(not text.isascii() and "\n" in text for text in texts)
    assert {0, -1, 1} < set(numbers)
    assert max(numbers) >= 10_000


def test_lists_and_objects_are_tried_empty_and_full(wanted):
    contract = derive_contract(bare(wanted, inputs=inputs_of("list", "object", "list[integer]", required=True)))
    lists, objects, numbers = (values(contract, f"input_{number}") for number in range(3))
    assert [] in lists
    assert max(map(len, lists)) > 10
    assert {} in objects
    assert any(len(value) > 1 for value in objects)
    assert all(isinstance(number, int) for value in numbers for number in value)


def test_values_that_the_request_shows_come_first(wanted):
    shown = [{"name": "text", "type": "string", "description": "A text", "required": True, "examples": ["ahoy", "hey"]}]
    contract = derive_contract(bare(wanted, inputs=shown))
    assert values(contract, "text")[:2] == ["ahoy", "hey"]


def test_many_inputs_share_a_bounded_number_of_calls_and_each_is_tried(wanted):
    contract = derive_contract(bare(wanted, inputs=inputs_of(*["boolean"] * 12, required=True)))
    assert len(contract.accepted) <= MAX_ACCEPTED
    base = contract.accepted[0].arguments
    changed = {name for sample in contract.accepted for name in base if sample.arguments[name] != base[name]}
    assert changed == set(base)


types = st.sampled_from(["string", "integer", "boolean", "list", "object", "number", "list[string]", "list[integer]"])
fields = st.lists(st.tuples(types, st.booleans()), max_size=6)


@given(fields)
def test_accepted_calls_fit_the_schema_refused_ones_do_not_and_both_are_the_same_every_time(declared):
    inputs = [
        {"name": f"input_{number}", "type": type_, "description": "An input", "required": required}
        for number, (type_, required) in enumerate(declared)
    ]
    request = read_request(
        write_request({"id": "req_20240115_001", "name": "any_tool", "description": "Anything", "inputs": inputs})
    )
    contract = derive_contract(request)
    fits = compile_schema(request.parameters).is_valid
    assert all(fits(sample.arguments) for sample in contract.accepted)
    assert not any(fits(sample.arguments) for sample in contract.refused)
    assert contract.accepted
    assert contract.refused
    assert derive_contract(request) == contract


def test_a_request_may_ask_for_what_the_operator_lets_requests_have(wanted):
    request = wanted(capabilities=["fs.read", "net.http"])
    refuse_beyond(request, allowance_of(), frozenset({"fs.*", "net.http"}))
    refuse_beyond(request, allowance_of("net.http"), frozenset({"fs.read"}))
    refuse_beyond(wanted(), allowance_of(), frozenset())


def test_a_request_that_asks_for_more_is_refused_with_the_cure(wanted):
    request = wanted(capabilities=["fs.read", "net.http", "shell.execute"])
    with pytest.raises(ToolError) as caught:
        refuse_beyond(request, allowance_of(), frozenset({"fs.*"}))
    assert caught.value.kind is Kind.CAPABILITY_MISSING
    assert caught.value.details["missing"] == ["net.http", "shell.execute"]
    assert caught.value.message == (
        "text_shouter asks for net.http, shell.execute, which no request may have here; add it to the setting "
        "builder.capabilities, or allow it for this request alone: crib request allow"
    )
