"""Parameters are read where the database reads them, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import ToolError
from toolcrib.features.sql_tools.statement import (
    Dialect,
    Placeholder,
    check_statement,
    compile_statement,
    find_parameters,
)

LITE, POSTGRES = Dialect.SQLITE, Dialect.POSTGRESQL


@pytest.mark.parametrize(
    ("text", "dialect", "names"),
    [
        ("SELECT :a, :b, :a", LITE, ["a", "b"]),
        ("SELECT ':a', \":a\", `:a`, [:a] -- :a\n /* :a */ , :b", LITE, ["b"]),
        ("SELECT 'it''s :a', :b", LITE, ["b"]),
        (r"SELECT E'\' :a', :b", POSTGRES, ["b"]),
        ("SELECT $$ :a $$, $x$ :a $$ $x$, :b", POSTGRES, ["b"]),
        ("SELECT /* one /* two :a */ :a */ :b", POSTGRES, ["b"]),
        ("SELECT /* one /* two */ :b", LITE, ["b"]),
        ("SELECT x::int, :b::text, y [1 : 2]", POSTGRES, ["b"]),
        ("SELECT data ? 'key', data @> :b", POSTGRES, ["b"]),
        ("SELECT U&'\\0061 :a', :größe", POSTGRES, ["größe"]),
    ],
)
def test_a_parameter_is_no_part_of_a_text_a_name_or_a_comment(text: str, dialect: Dialect, names: list[str]) -> None:
    assert find_parameters(text, dialect) == names


@pytest.mark.parametrize(
    ("text", "dialect", "problem"),
    [
        ("", LITE, "holds no statement; write one, such as SELECT name FROM customers WHERE city = :city"),
        ("-- nothing", LITE, "holds no statement; write one, such as SELECT name FROM customers WHERE city = :city"),
        ("SELECT 1; DROP TABLE a", LITE, "holds several statements; write one statement for each tool"),
        ("SELECT 1;;", LITE, ""),
        ("SELECT ';'", LITE, ""),
        ("SELECT ?", LITE, "? is not a parameter; write its name after a colon, such as :city"),
        ("SELECT @a", LITE, "@a is not a parameter; write its name after a colon, such as :city"),
        ("SELECT $1", POSTGRES, "$1 is not a parameter; write its name after a colon, such as :city"),
        ("SELECT 'a", LITE, "a quote at character 8 is not closed; close it"),
        ("SELECT [a", LITE, "a quote at character 8 is not closed; close it"),
        ("SELECT $a$ b", POSTGRES, "a quote at character 8 is not closed; close it"),
        ("SELECT 1 /* b", LITE, "a comment at character 10 is not closed; close it with */"),
        ("DELETE FROM a", LITE, 'DELETE changes the database; write "write": true'),
        ("  (SELECT 1)", POSTGRES, ""),
    ],
)
def test_a_statement_that_cannot_be_that_of_a_tool_is_refused_with_its_cure(
    text: str, dialect: Dialect, problem: str
) -> None:
    assert check_statement(text, dialect, write=False) == problem


@pytest.mark.parametrize("verb", ["PRAGMA", "ATTACH", "COPY", "SET", "BEGIN", "DO", "CALL", "VACUUM", "CREATE", "DROP"])
def test_only_statements_that_read_or_change_rows_are_tools(verb: str) -> None:
    assert check_statement(f"{verb} x", LITE, write=True).startswith(f"begins with {verb}; a tool runs one of DELETE, ")


def compiled(text: str, dialect: Dialect, lists: frozenset[str] = frozenset({"ids"})) -> tuple[str, list[Placeholder]]:
    (statement,) = compile_statement(text, dialect, choices={}, lists=lists).values()
    return statement.text, [*statement.places]


def test_each_name_is_one_numbered_place() -> None:
    assert compiled("SELECT :a + :b + :a;", LITE) == ("SELECT ?1 + ?2 + ?1", [Placeholder("a"), Placeholder("b")])
    assert compiled("SELECT :a::int, ':a'", POSTGRES) == ("SELECT $1::int, ':a'", [Placeholder("a")])


def test_a_list_behind_in_is_bound_as_one_value() -> None:
    ids = [Placeholder("ids", is_list=True)]
    assert compiled("… x IN (:ids)", LITE) == ("… x IN (SELECT value FROM json_each(?1))", ids)
    assert compiled("… x IN /* a */ ( :ids )", POSTGRES) == ("… x = ANY /* a */ ( $1 )", ids)
    assert compiled("… x NOT IN (:ids)", POSTGRES) == ("… x  <> ALL ($1)", ids)
    assert compiled("… x IN (:ids)", POSTGRES, frozenset()) == ("… x IN ($1)", [Placeholder("ids")])
    assert compiled("… x IN (:ids, 2)", POSTGRES) == ("… x IN ($1, 2)", [Placeholder("ids")])


def test_a_comparison_with_null_has_a_place_of_its_own_that_postgresql_can_type() -> None:
    places = [Placeholder("a", is_null_test=True), Placeholder("a")]
    assert compiled("… :a IS NOT /* */ NULL AND x = :a", POSTGRES) == (
        "… $1::text IS NOT /* */ NULL AND x = $2",
        places,
    )
    assert compiled("… :a IS NULL", LITE) == ("… ?1 IS NULL", [Placeholder("a")])


def test_each_choice_is_a_statement_of_its_own() -> None:
    choices = {"order": {"up": "ASC", "down": "DESC"}, "by": {"name": "name, :a"}}
    found = compile_statement("SELECT 1 ORDER BY :by :order", LITE, choices=choices, lists=frozenset())
    assert {keys: " ".join(made.text.split()) for keys, made in found.items()} == {
        ("name", "up"): "SELECT 1 ORDER BY name, ?1 ASC",
        ("name", "down"): "SELECT 1 ORDER BY name, ?1 DESC",
    }


@given(st.text(alphabet="$a'\"[]`:;/*-e \n\\E", max_size=200), st.sampled_from(Dialect))
def test_any_text_is_read_or_refused(text: str, dialect: Dialect) -> None:
    try:
        names = find_parameters(text, dialect)
    except ToolError:
        return
    assert all(f":{name}" in text for name in names)


@pytest.mark.parametrize("piece", ["[", "$a", "'", "/*", "$$", "E'", '"'])
def test_a_text_of_many_openings_takes_no_quadratic_time(piece: str) -> None:
    for dialect in Dialect:
        check_statement(f"SELECT {piece * (40_000 // len(piece))}", dialect, write=False)
