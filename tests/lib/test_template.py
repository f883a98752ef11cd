"""A document is filled once: values keep their type or are encoded for their place, and are never read as templates."""

import re
from urllib.parse import unquote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.lib.templates import (
    ABSENT,
    Name,
    Text,
    Variable,
    as_text,
    as_url_part,
    compile_template,
    look_up_in,
    read_braces,
)

SLOTTED = re.compile(r"\{\w+\}|\$\{\w+")


def no_variable(name):
    raise AssertionError(name)


def fill(document, values=None, variables=None, **more):
    lookup = look_up_in(frozenset(values or {}), values or {}, {})
    return compile_template(document).render(lookup, (variables or {}).get if variables else no_variable, **more)


def refuse(action, *arguments, **more):
    with pytest.raises(ToolError) as caught:
        action(*arguments, **more)
    return caught.value


class TestSyntax:
    @pytest.mark.parametrize(
        ("text", "read"),
        [
            ("{name}", Text((Name("name"),))),
            ("a {b} c", Text(("a ", Name("b"), " c"))),
            ("{a}{b}", Text((Name("a"), Name("b")))),
            ("${NAME}", Text((Variable("NAME"),))),
            ("${NAME:-a b}", Text((Variable("NAME", "a b"),))),
            ("${NAME:-}", Text((Variable("NAME", ""),))),
            ("{größe}", Text((Name("größe"),))),
            ('{"a": {b}}', Text(('{"a": ', Name("b"), "}"))),
            ("{{a}} {b}", Text(("{a} ", Name("b")))),
        ],
    )
    def test_what_is_a_slot(self, text, read):
        assert read_braces(text) == read

    @pytest.mark.parametrize(
        ("text", "literal"),
        [
            ("{{name}}", "{name}"),
            ("${{NAME}}", "${NAME}"),
            ("{{{name}}}", "{{name}}"),
            ("a {{b}} c {{d}}", "a {b} c {d}"),
        ],
    )
    def test_doubled_braces_stand_for_themselves(self, text, literal):
        assert fill(text) == literal

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{}",
            "{ name }",
            "{1}",
            "{a-b}",
            "{a.b}",
            "{a",
            "a}",
            "{{}}",
            "$NAME",
            "${",
            "${a-b}",
            "${1}",
            '{"a": 1}',
            "${A%/}",
        ],
    )
    def test_other_braces_are_literal(self, text):
        assert fill(text) == text

    def test_it_tells_its_names_and_variables(self):
        template = compile_template({"a": ["{x} ${Y:-z}"], "b": {"c": "{x}{w}"}, "{key}": 1, "d": "{{no}}"})
        assert template.names == {"x", "w"}
        assert template.variables == {"Y"}


class TestFilling:
    @pytest.mark.parametrize("value", ["text", 5, 1.5, True, None, [1, {"a": None}], {"b": "{c}"}])
    def test_a_string_that_is_one_slot_keeps_the_type_of_the_value(self, value):
        assert fill({"a": ["{x}"]}, {"x": value}) == {"a": [value]}

    @pytest.mark.parametrize(
        ("value", "written"),
        [
            ("a b", "a b"),
            (5, "5"),
            (1.5, "1.5"),
            (True, "true"),
            (None, "null"),
            ([1, "ä"], '[1,"ä"]'),
            ({"a": 1}, '{"a":1}'),
        ],
    )
    def test_in_a_text_everything_but_text_is_json(self, value, written):
        assert fill("<{x}>", {"x": value}) == f"<{written}>"

    def test_keys_have_no_slots(self):
        assert fill({"{x}": "{x}"}, {"x": 1}) == {"{x}": 1}

    def test_a_value_that_looks_like_a_template_stays_as_it_is(self):
        values = {"x": "{y} ${HOME} {{z}}", "y": "secret"}
        assert fill({"a": "{x}", "b": "[{x}]"}, values) == {"a": values["x"], "b": f"[{values['x']}]"}

    def test_a_variable_that_looks_like_a_template_stays_as_it_is(self):
        assert fill("{x}-${A}", {"x": "1"}, {"A": "{x}${A}"}) == "1-{x}${A}"

    @pytest.mark.parametrize(("value", "text"), [("set", "set"), ("", "else"), (None, "else")])
    def test_a_default_counts_where_a_variable_is_unset_or_empty(self, value, text):
        assert fill("${A:-else}", {}, {"A": value, "B": "1"}) == text

    def test_an_empty_variable_without_default_is_empty(self):
        assert fill("${A}", {}, {"A": ""}) == ""

    def test_an_unset_variable_without_default_is_refused_with_its_cure(self):
        error = refuse(fill, "${A}", {}, {"B": "1"})
        assert error.kind is Kind.VALIDATION
        assert error.message == "the variable A is not set on the host; set it, or write ${A:-default}"

    def test_a_default_does_not_replace_a_variable_that_is_not_allowed(self):
        def variable(name):
            raise ToolError(Kind.CAPABILITY_MISSING, name)

        error = refuse(compile_template("${A:-x}").render, no_variable, variable)
        assert error.kind is Kind.CAPABILITY_MISSING

    def test_a_variable_that_is_no_text_is_refused_and_not_shown(self):
        error = refuse(fill, "${A}", {}, {"A": "geheim\udcff"})
        assert error.kind is Kind.VALIDATION
        assert "the variable A holds bytes that are not UTF-8" in error.message
        assert "geheim" not in error.message

    @pytest.mark.spec("S3-41")
    def test_the_body_of_a_remote_call_keeps_its_object(self):
        body = {"jsonrpc": "2.0", "id": "{request_id}", "method": "{rpc_method}", "params": "{rpc_params}"}
        lookup = look_up_in(
            {"rpc_method", "rpc_params"}, {"rpc_method": "ping", "rpc_params": {"a": [1]}}, {"request_id": "r-1"}
        )
        assert compile_template(body).render(lookup, no_variable) == {
            "jsonrpc": "2.0",
            "id": "r-1",
            "method": "ping",
            "params": {"a": [1]},
        }


class TestNames:
    def test_a_declared_parameter_comes_before_the_platform_and_that_before_any_other_argument(self):
        lookup = look_up_in({"a"}, {"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 2})
        assert [lookup(name) for name in "abc"] == [1, 2, 1]

    def test_a_declared_parameter_that_is_missing_is_not_taken_from_the_platform(self):
        assert look_up_in({"now"}, {}, {"now": 2})("now") is ABSENT

    def test_an_unknown_name_is_refused_with_its_cure(self):
        error = refuse(look_up_in({}, {}, {}), "print")
        assert error.kind is Kind.VALIDATION
        assert error.message == (
            "{print} is neither a parameter nor a name of the platform; "
            "declare a parameter of that name, or write {{print}} for the text itself"
        )

    def test_a_member_whose_parameter_is_missing_is_left_out(self):
        template = compile_template({"a": "{x}", "b": {"c": "{x}", "d": 1}})
        assert template.render(look_up_in({"x"}, {}, {}), no_variable) == {"b": {"d": 1}}

    @pytest.mark.parametrize("document", ["{x}", "a{x}", ["{x}"], {"a": ["{x}"]}, {"a": "b {x}"}])
    def test_anywhere_else_a_parameter_that_was_not_given_is_refused(self, document):
        error = refuse(compile_template(document).render, look_up_in({"x"}, {}, {}), no_variable)
        assert error.kind is Kind.VALIDATION
        assert error.message == "{x} has no value; give x, or give the parameter a default"


class TestPlaces:
    @pytest.mark.parametrize("value", ["a/b", "a?b&c=d#e", "..%2f", "ä €", "a+b c", 5, {"a": "b"}])
    def test_in_a_url_a_value_adds_no_part(self, value):
        written = fill("https://h/{x}?q={x}", {"x": value}, place=as_url_part)
        path, query = written.removeprefix("https://h/").split("?q=")
        assert path == query
        assert re.fullmatch(r"[\w.~%-]+", path, re.ASCII)
        assert unquote(path) == as_text(value)

    @given(st.text())
    def test_a_url_part_comes_back_as_it_was(self, value):
        assert unquote(as_url_part(value)) == value


DOCUMENTS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
# Texts that are made of what templates are made of.
TRICKY = st.text(alphabet=st.sampled_from('{}$ab:-A \\"'), max_size=12)


def strings_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings_of(part)


@given(DOCUMENTS)
def test_a_document_without_slots_stays_as_it_is(document):
    assume(not any(SLOTTED.search(text) for text in strings_of(document)))
    assert fill(document) == document


@given(TRICKY, TRICKY, TRICKY)
def test_no_value_is_ever_expanded_again(before, between, value):
    """What is written equals the pieces put together, for all values."""
    text = read_braces(f"{before}{{a}}{between}${{A}}")
    pieces = text.pieces if isinstance(text, Text) else (text,)
    asked = []

    def lookup(name):
        asked.append(name)
        return value

    def variable(name):
        asked.append(name)
        return value + "{a}${A}"

    expected = "".join(
        piece if isinstance(piece, str) else value if isinstance(piece, Name) else (value + "{a}${A}")
        for piece in pieces
    )
    written = compile_template(f"{before}{{a}}{between}${{A}}").render(lookup, variable)
    assert written == expected
    assert asked == [piece.name for piece in pieces if not isinstance(piece, str)]


@given(TRICKY)
def test_every_text_can_be_written_as_a_value(value):
    assert fill(["{x}", "{x}{x}"], {"x": value}) == [value, value + value]
