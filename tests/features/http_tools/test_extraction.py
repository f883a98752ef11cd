"""Values out of answers: JSONPath by RFC 9535, patterns of linear time, and bounds on both."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.features.http_tools.extraction import compile_extract, compile_json_path, is_json_path
from toolcrib.features.http_tools.filters import Budget, compile_pattern, cost_of

STORE: dict[str, Any] = {
    "store": {
        "book": [
            {"category": "reference", "author": "Nigel Rees", "title": "Sayings of the Century", "price": 8.95},
            {"category": "fiction", "author": "Evelyn Waugh", "title": "Sword of Honour", "price": 12.99},
            {"category": "fiction", "author": "Herman Melville", "title": "Moby Dick", "isbn": "0-553", "price": 8.99},
            {"category": "fiction", "author": "J. R. R. Tolkien", "title": "The Ring", "isbn": "0-395", "price": 22.99},
        ],
        "bicycle": {"color": "red", "price": 399},
    }
}
LETTERS = ["a", "b", "c", "d", "e", "f", "g"]
MIXED = {
    "a": [3, 5, 1, 2, 4, 6, {"b": "j"}, {"b": "k"}, {"b": {}}, {"b": "kilo"}],
    "o": {"p": 1, "q": 2, "r": 3},
    "e": "f",
}
BOOKS = STORE["store"]["book"]


def find(expression, document):
    return compile_json_path(expression)(document, Budget())


@pytest.mark.spec("S1-34")
@pytest.mark.parametrize(
    ("expression", "document", "expected"),
    [
        # the root
        ("$", {"k": "v"}, [{"k": "v"}]),
        ("$", 0, [0]),
        # names
        ("$.o['j j']", {"o": {"j j": {"k.k": 3}}}, [{"k.k": 3}]),
        ("$.o['j j']['k.k']", {"o": {"j j": {"k.k": 3}}}, [3]),
        ("$['o'][\"x\"]", {"o": {"x": 1}}, [1]),
        ("$[\"'\"]['\\'']", {"'": {"'": 2}}, [2]),
        ("$['\\u263A']", {"☺": 1}, [1]),
        ("$['\\uD834\\uDD1E']", {"𝄞": 1}, [1]),
        ("$.☺", {"☺": 1}, [1]),
        ("$.a", ["a"], []),
        ("$.missing", {"a": None}, []),
        ("$.a", {"a": None}, [None]),
        ("$['']", {"": 1}, [1]),
        # numbers of items
        ("$[1]", LETTERS, ["b"]),
        ("$[-2]", LETTERS, ["f"]),
        ("$[7]", LETTERS, []),
        ("$[-8]", LETTERS, []),
        ("$[0]", {"0": 1}, []),
        ("$[0]", "text", []),
        # wildcards
        ("$.o[*]", {"o": {"j": 1, "k": 2}}, [1, 2]),
        ("$.*", [5, 3], [5, 3]),
        ("$.o[*, *]", {"o": {"j": 1, "k": 2}}, [1, 2, 1, 2]),
        ("$.*", "text", []),
        # slices
        ("$[1:3]", LETTERS, ["b", "c"]),
        ("$[5:]", LETTERS, ["f", "g"]),
        ("$[1:5:2]", LETTERS, ["b", "d"]),
        ("$[5:1:-2]", LETTERS, ["f", "d"]),
        ("$[::-1]", LETTERS, LETTERS[::-1]),
        ("$[:2]", LETTERS, ["a", "b"]),
        ("$[-3:]", LETTERS, ["e", "f", "g"]),
        ("$[::0]", LETTERS, []),
        ("$[3:1]", LETTERS, []),
        ("$[-100:100]", LETTERS, LETTERS),
        ("$[1:2]", {"1": 2}, []),
        # several at once
        ("$[0, 3]", LETTERS, ["a", "d"]),
        ("$[0:2, 5]", LETTERS, ["a", "b", "f"]),
        ("$[0, 0]", LETTERS, ["a", "a"]),
        ("$['a', 'e']", MIXED, [MIXED["a"], "f"]),
        # descendants
        ("$..j", {"o": {"j": 1, "k": 2}, "a": [5, 3, [{"j": 4}, {"k": 6}]]}, [1, 4]),
        ("$..[0]", {"o": {"j": 1}, "a": [5, 3, [{"j": 4}, {"k": 6}]]}, [5, {"j": 4}]),
        ("$..*", [[1], {"a": 2}], [[1], {"a": 2}, 1, 2]),
        ("$.a..[0, 1]", {"a": [5, 3, [{"j": 4}, {"k": 6}]]}, [5, 3, {"j": 4}, {"k": 6}]),
        ("$.store..price", STORE, [8.95, 12.99, 8.99, 22.99, 399]),
        ("$..book[2]", STORE, [BOOKS[2]]),
        ("$..book[-1]", STORE, [BOOKS[3]]),
        ("$..x", 5, []),
        # filters: what is there
        ("$..book[?@.isbn]", STORE, BOOKS[2:]),
        ("$..book[?@.price<10].title", STORE, ["Sayings of the Century", "Moby Dick"]),
        ("$[?@]", [0, False, "", None, [], {}], [0, False, "", None, [], {}]),
        ("$[?@.a]", [{"a": None}, {"a": False}, {"a": []}, {"b": 1}], [{"a": None}, {"a": False}, {"a": []}]),
        ("$[?!@.a]", [{"a": None}, {"b": 1}, 3], [{"b": 1}, 3]),
        ("$[?@.*]", [[], [1], {}, {"a": 1}], [[1], {"a": 1}]),
        ("$.o[?@>1]", MIXED, [2, 3]),
        ("$[?@[?@>1]]", [[0, 2], [1], [3]], [[0, 2], [3]]),
        ("$[?$.limit]", {"limit": 1, "a": 2}, [1, 2]),
        # filters: comparisons
        ("$.a[?@.b == 'kilo']", MIXED, [{"b": "kilo"}]),
        ("$.a[?(@.b == 'kilo')]", MIXED, [{"b": "kilo"}]),
        ("$.a[?@>3.5]", MIXED, [5, 4, 6]),
        ('$.a[?@<2 || @.b == "k"]', MIXED, [1, {"b": "k"}]),
        ("$.o[?@>1 && @<4]", MIXED, [2, 3]),
        ("$.a[?@.b == $.x]", MIXED, [3, 5, 1, 2, 4, 6]),
        ("$.a[?@ == @]", MIXED, MIXED["a"]),
        ("$[?@.a == @.b]", [{"a": 1, "b": 1}, {"a": 1}, {}], [{"a": 1, "b": 1}, {}]),
        ("$[?@.a != @.b]", [{"a": 1, "b": 1}, {"a": 1}, {}], [{"a": 1}]),
        ("$[?@.a <= @.b]", [{"a": 1, "b": 1}, {"a": 1}, {}], [{"a": 1, "b": 1}, {}]),
        ("$[?@ == 1]", [1, 1.0, True, "1"], [1, 1.0]),
        ("$[?@ == true]", [1, True, "true"], [True]),
        ("$[?@ == null]", [None, 0, False], [None]),
        ("$[?@ == $[0]]", [[True], [1], [True]], [[True], [True]]),
        ("$[?@ == $[0]]", [{"a": 1, "b": [2]}, {"b": [2], "a": 1}, {"a": 1}], [{"a": 1, "b": [2]}, {"b": [2], "a": 1}]),
        ("$[?@ < 'b']", ["a", "b", 1, None], ["a"]),
        ("$[?@ >= 'b']", ["a", "b", "c", 1], ["b", "c"]),
        ("$[?@ < 2]", [1, "1", False, None, [1]], [1]),
        ("$[?@ <= true]", [True, False, 1], [True]),
        ("$[?@ >= null]", [None, 0], [None]),
        ("$[?@ < true]", [False, 0], []),
        ("$[?@ == -1.5e1]", [-15, -15.0, 15], [-15, -15.0]),
        ("$[?'a' == @]", ["a", "b"], ["a"]),
        ("$[?1 < 2]", [1, "x"], [1, "x"]),
        # filters: precedence
        ("$[?@ == 1 || @ == 2 && @ == 3]", [1, 2, 3], [1]),
        ("$[?(@ == 1 || @ == 2) && @ == 2]", [1, 2, 3], [2]),
        ("$[?!(@ == 1)]", [1, 2], [2]),
        ("$[?!(@ == 1) && @ < 3]", [1, 2, 3], [2]),
        # functions
        ("$[?length(@) > 1]", ["a", "ab", [1], [1, 2], {"a": 1}, {"a": 1, "b": 2}, 12, None], ["ab", [1, 2], {"a": 1, "b": 2}]),
        ("$[?length(@) == 1]", ["☺", "𝄞", "é"], ["☺", "𝄞", "é"]),
        ("$[?length(@.x) == length(@.y)]", [{"x": 1}, {"x": "a", "y": "b"}], [{"x": 1}, {"x": "a", "y": "b"}]),
        ("$[?count(@.*) > 1]", [[1], [1, 2], {"a": 1, "b": 2}, 7], [[1, 2], {"a": 1, "b": 2}]),
        ("$[?count(@.x) == 0]", [{"x": 1}, {}], [{}]),
        ("$[?value(@..color) == 'red']", [{"a": {"color": "red"}}, {"b": [{"color": "blue"}]}], [{"a": {"color": "red"}}]),
        ("$[?value(@.*) == 1]", [[1], [1, 1], []], [[1]]),
        ("$[?match(@, 'a.c')]", ["abc", "xabcx", "a\nc", "a\rc", 3], ["abc"]),
        ("$[?search(@, '[Bb]')]", ["abc", "B", "x", None], ["abc", "B"]),
        ("$[?match(@, 'a[.]c')]", ["a.c", "abc"], ["a.c"]),
        ("$[?match(@, 'a\\\\.c')]", ["a.c", "abc"], ["a.c"]),
        ("$[?match(@.date, '1974-05-..')]", [{"date": "1974-05-21"}, {"date": "1974-06-21"}], [{"date": "1974-05-21"}]),
        ("$[?match(@, '\\\\p{Lu}.*')]", ["Äa", "äa"], ["Äa"]),
        ("$[?!match(@, 'a')]", ["a", "b", 1], ["b", 1]),
        # blanks
        ("$[ 'a' , 'b' ]", {"a": 1, "b": 2}, [1, 2]),
        ("$[?@.a\n==\t1]", [{"a": 1}], [{"a": 1}]),
    ],
)  # fmt: skip
def test_a_json_path_selects_what_the_standard_says(expression, document, expected):
    found = find(expression, document)
    assert json.dumps(found) == json.dumps(expected)


@pytest.mark.spec("S1-34")
@pytest.mark.parametrize(
    "expression",
    [
        "$.", "$..", "$[", "$[]", "$['a'", "$[a]", "$.a b", "$[01]", "$[-0]", "$[1.5]", "$[9007199254740993]", "$['\\x']",
        "$['\\uD800']", "$[?]", "$[?@.a==]", "$[?@.a=1]", "$[?@.a==1 &&]", "$[?(@.a]", "$[?nope(@)]", "$[?length()]",
        "$[?length(@, @)]", "$[?length(@.*) == 1]", "$[?count(1) == 1]", "$[?match(@)]", "$[?match(@, 'a') == true]",
        "$[?length(@)]", "$[?@.* == 1]", "$[?@..a == 1]", "$[?1]", "$[?'a']", "$[?true]", "$.a[?@.b = 'x']", "$[?@ == 01]",
        "$[?@ == [1]]", "$[1:2:3:4]", "$[?count(@.a)]", "$.$", "$['a' 'b']", "$[,]", "$[0,]", "$." + "a." * 1_500, "$[?" + "(" * 900 + "@",
        "$[?" + "!" * 500 + "@]",
    ],
)  # fmt: skip
def test_a_json_path_that_is_none_is_refused_in_words(expression):
    with pytest.raises(ToolError) as refusal:
        compile_extract(expression)
    assert refusal.value.kind is Kind.VALIDATION
    assert refusal.value.message.endswith(("; correct it", "; write a shorter one", "; write a simpler one"))


@pytest.mark.spec("S1-101")
@pytest.mark.parametrize(
    ("expression", "is_path"),
    [
        ("$", True),
        ("$.a", True),
        ("$[0]", True),
        ("$a", False),
        ("$ .a", False),
        ("\\$.a", False),
        ("^a$", False),
        ("$\n", False),
    ],
)
def test_a_dollar_with_a_dot_a_bracket_or_nothing_behind_it_begins_a_json_path(expression, is_path):
    assert is_json_path(expression) is is_path
    assert compile_extract(expression).looks_into_json is is_path


@pytest.mark.spec("S1-101")
def test_one_match_is_the_value_and_several_are_a_list():
    document = {"a": [{"id": 1}, {"id": 2}], "b": [[7]]}
    assert compile_extract("$.a[*].id")(document) == [1, 2]
    assert compile_extract("$.a[:1].id")(document) == 1
    assert compile_extract("$.b[0]")(document) == [7]
    assert compile_extract(r"\d+")("a1 b22") == ["1", "22"]


@pytest.mark.spec("S1-34")
@pytest.mark.parametrize("expression", ["$.x", "$.a.b.c", "$..zzz", r"x(\d)"])
def test_no_match_says_where_nothing_was(expression):
    extract = compile_extract(expression)
    with pytest.raises(ToolError, match="the answer has nothing at") as failure:
        extract({"a": {"b": 1}} if extract.looks_into_json else "abc")
    assert failure.value.kind is Kind.OUTPUT_INVALID
    assert failure.value.details == {"extract": expression}


@pytest.mark.spec("S1-35")
@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"temp=(\d+)C", "now temp=21C", "21"),
        (r"\d+C", "now 21C", "21C"),
        (r"(?i)HELLO", "say hello", "hello"),
        (r"(?s)a(.*)c", "a\nb\nc", "\nb\n"),
        (r"(?P<name>\w+)@", "ann@example bob@example", ["ann", "bob"]),
        (r"a(b)?", "a ab", "b"),
        (r"(ü+)", "grüüße 天気", "üü"),
        ("気", "天気", "気"),
        (r"(a)(b)", "ab", "a"),
    ],
)
def test_a_pattern_gives_group_one_or_the_match(pattern, text, expected):
    assert compile_extract(pattern)(text) == expected


@pytest.mark.spec("S1-35")
@pytest.mark.parametrize("pattern", [r"a(?=b)", r"(a)\1", r"(?<!a)b", r"a++b(?>c)"])
def test_a_pattern_that_goes_back_is_refused_as_not_supported(pattern):
    with pytest.raises(ToolError, match=r"pattern not supported \(linear-time engine\)"):
        compile_extract(pattern)


@pytest.mark.spec("S1-35")
@pytest.mark.parametrize("pattern", ["(", "a)", "[a", "*", "a{2,1}"])
def test_a_pattern_that_is_none_is_refused(pattern):
    with pytest.raises(ToolError, match="is not a regular expression|pattern not supported"):
        compile_extract(pattern)


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "x{2000}"])
def test_a_pattern_inside_a_json_path_is_looked_at_when_it_is_read(pattern):
    with pytest.raises(ToolError, match="is not a regular expression|pattern not supported"):
        compile_extract(f"$[?match(@, '{pattern}')]")


@pytest.mark.parametrize(
    "expression", ["$[?search(@.text, @.pattern)]", "$[?match(@, $.a)]", "$[?match(@, value(@..a))]"]
)
def test_an_answer_does_not_bring_its_own_pattern(expression):
    with pytest.raises(ToolError, match="from the answer; write it out in quotes"):
        compile_extract(expression)


@pytest.mark.spec("S1-35")
@pytest.mark.parametrize(
    "pattern", [r"((a ){1,500}){1,2}x", r"((a{1,30}){1,30}){1,9}", r"[\pL\pN]{3}", r"(?:\pL ){1,9}"]
)
@pytest.mark.parametrize("around", ["{}", "$[?match(@, '{}')]", "$[?search(@.a, '{}')]"])
def test_a_pattern_that_becomes_too_large_is_refused(pattern, around):
    written = pattern.replace("\\", "\\\\") if around != "{}" else pattern
    with pytest.raises(ToolError, match=r"pattern too large \(linear-time engine\)|pattern not supported") as refusal:
        compile_extract(around.replace("{}", written))
    assert refusal.value.kind is Kind.VALIDATION


@pytest.mark.parametrize(
    "pattern", [r"\pL+", r"<title>(.*?)</title>", r"(?i)temp(?:erature)?\s*[:=]\s*(-?\d{1,3})", r".{1,100}x"]
)
def test_usual_patterns_are_not_too_large(pattern):
    assert compile_extract(pattern).expression == pattern


def test_a_text_is_charged_before_it_is_looked_through():
    pattern = "(a|b)*a[ab]{200}x"
    with pytest.raises(ToolError, match="looks at too much of the answer") as stopped:
        compile_extract(pattern)("ab" * 2_500_000)
    assert stopped.value.kind is Kind.LIMIT_EXCEEDED
    with pytest.raises(ToolError, match="looks at too much of the answer"):
        compile_extract(f"$[?search(@, '{pattern}')]")(["ab" * 250_000] * 10)


def test_letters_of_several_bytes_cost_more():
    pattern = compile_pattern("a{20}")
    assert cost_of(pattern, "天" * 9_000) > 2.9 * cost_of(pattern, "a" * 9_000)


def test_an_expression_that_looks_at_everything_more_than_once_is_refused():
    for expression in ("$..a..b", "$..[?@..b]", "$[?$..a && $..b]"):
        with pytest.raises(ToolError, match='has ".." more than once'):
            compile_extract(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "$[?count($[*]) > 3]",
        "$[?$[?@.none]]",
        "$[?$[?@ == -1]]",
        "$[?$..none]",
        "$[?$ == $]",
        "$[?count($[::1]) == 0]",
    ],
)
def test_looking_at_too_much_is_stopped(expression):
    document = list(range(3_000))
    with pytest.raises(ToolError, match="looks at too much of the answer") as stopped:
        find(expression, document)
    assert stopped.value.kind is Kind.LIMIT_EXCEEDED


def test_time_is_bounded_where_single_steps_are_long():
    now = [0.0]

    def clock():
        now[0] += 0.01
        return now[0]

    with pytest.raises(ToolError, match="looks at too much"):
        compile_json_path("$[?@ > 1]")(list(range(10)) * 20, Budget(seconds=0.5, clock=clock))
        compile_json_path("$[?match(@.a, 'x')]")([{"a": "y"}] * 200, Budget(seconds=0.5, clock=clock))


def test_a_pattern_that_matches_everywhere_is_stopped():
    with pytest.raises(ToolError, match="finds more than 10000 matches"):
        compile_extract("a?")("a" * 50_000)


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|a)*$", r"(.*)*x", r"a(?:.*b)?"])
def test_no_pattern_hangs(pattern):
    """The budget is one second; a pattern that goes back takes longer than the limit of a test."""
    try:
        compile_extract(pattern)("a" * 200_000 + "!")
    except ToolError as stopped:
        kind = stopped.kind
    else:
        kind = Kind.OUTPUT_INVALID
    assert kind in {Kind.OUTPUT_INVALID, Kind.LIMIT_EXCEEDED}


@pytest.mark.parametrize("expression", ["$..a", "$.a.a", "$[?@.a == $]", "$..[?@.a]"])
def test_deep_documents_are_followed_or_refused_and_never_overflow(expression):
    document = {"a": 1}
    for _ in range(60):
        document = {"a": document, "b": [document]}
    try:
        find(expression, document)
    except ToolError as stopped:
        kind = stopped.kind
    else:
        kind = Kind.LIMIT_EXCEEDED
    assert kind is Kind.LIMIT_EXCEEDED


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "b", ""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_descendants_are_all_values_below_each_once(document):
    def below(value):
        children = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        return len(children) + sum(map(below, children))

    assert len(find("$..*", document)) == below(document)


@given(JSON, st.lists(st.sampled_from(["a", "b", 0, 1, -1]), max_size=4))
def test_the_short_way_and_the_long_way_lead_to_the_same(document, keys):
    """A union of one selector with itself is not a short way, and gives everything twice."""
    straight = "$" + "".join(f"[{key!r}]" for key in keys)
    doubled = "$" + "".join(f"[{key!r}]" for key in keys[:-1]) + "".join(f"[{key!r}, {key!r}]" for key in keys[-1:])
    assert find(doubled, document) == find(straight, document) * (2 if keys else 1)


@given(st.text("$.[]*?@'\"()<>=!&|:,-01ab \\", max_size=30))
def test_any_text_is_read_or_refused(expression):
    try:
        compile_extract(f"$.{expression}")
        compile_extract(f"$[{expression}]")
        compile_extract(f"$[?{expression}]")
    except ToolError as refusal:
        assert refusal.kind is Kind.VALIDATION  # noqa: PT017 - every other kind of failure would be raised
