"""Slots of a request: each knows its place, nothing is filled twice, and what its author wrote out stays as it is."""

import json
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_tools import http_call, http_run
from toolcrib import Kind, ToolError
from toolcrib.features.http_tools.request_check import check_http
from toolcrib.features.http_tools.request_template import compile_call
from toolcrib.features.http_tools.slots import Slot, read_braces, read_slots
from toolcrib.lib.templates import ABSENT

HERE = "https://api.example.com"
ARGUMENTS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "user": {"type": "object"}, "items": {"type": "array"}},
}
NO_SURROGATES = st.text(st.characters(exclude_categories=["Cs"]))
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NO_SURROGATES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NO_SURROGATES, inner, max_size=3),
    max_leaves=5,
)


def write(call=None, /, given=None, **parts):
    """The request with these values in its slots."""
    given = given or {}
    call = call or http_call(**{"url": HERE, **parts})
    return compile_call(call).write(lambda slot: slot.reach(given.get(slot.name, ABSENT)))


def url_of(url, **given):
    return str(write(url=url, given=given).url)


def body_of(body, kind="application/json", **given):
    headers = {} if kind is None else {"Content-Type": kind}
    return write(url=HERE, method="POST", headers=headers, body=body, given=given).body.decode()


def problems(**parts):
    return check_http(http_run(http_call(**{"url": HERE, **parts})), ARGUMENTS)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("${city}", (Slot("city"),)),
        ("a ${user.name} b", ("a ", Slot("user", ("name",)), " b")),
        ("${items[0].id}", (Slot("items", (0, "id")),)),
        ("${grid[1][2]}", (Slot("grid", (1, 2)),)),
        ("${user-id}${größe}", (Slot("user-id"), Slot("größe"))),
        ("{city} ${ {{x}} $5 $", None),
        ("{city} {} $5 $ 5$", ("{city} {} $5 $ 5$",)),
        ("$${city}", ("${city}",)),
        ("$$${price}", ("$", Slot("price"))),
        ("$$$${x}", ("$${x}",)),
        ("$${ and $$", ("${ and $$",)),
        ("", ()),
    ],
)
def test_slots_are_read_and_everything_else_is_literal(text, pieces):
    if pieces is None:
        with pytest.raises(ToolError, match=r"opens no slot; write \$\{name\}"):
            read_slots(text)
    else:
        assert read_slots(text) == pieces


@pytest.mark.parametrize(
    "slot", ["${}", "${ a}", "${1a}", "${a.}", "${a[b]}", "${a[-1]}", "${a", "${${a}}", "${a.b c}"]
)
def test_what_begins_like_a_slot_and_is_none_is_refused_with_the_cure(slot):
    assert "opens no slot" in problems(url=f"{HERE}/{slot}")[0]
    assert "$${ for the text itself" in problems(method="POST", body=slot)[0]


@given(NO_SURROGATES)
def test_every_text_can_be_written_literally(text):
    """Doubling the dollars before a brace is all that it takes."""
    escaped = "".join("$" * (2 * len(run)) if follows else run for run, follows in _runs(text))
    assert "".join(read_slots(escaped)) == text


def _runs(text):
    """The text in pieces, and for each whether it is a run of dollars with a brace behind it."""
    index = 0
    while index < len(text):
        end = index
        while end < len(text) and text[end] == "$":
            end += 1
        if end > index:
            yield text[index:end], text[end : end + 1] == "{"
        else:
            end = index + 1
            yield text[index:end], False
        index = end


@pytest.mark.spec("S1-28")
def test_values_are_percent_encoded_in_path_and_query():
    url = url_of(f"{HERE}/v1/${{city}}/now?q=${{city}}&x=1", city="São Paulo/&=?#%")
    encoded = "S%C3%A3o%20Paulo%2F%26%3D%3F%23%25"
    assert url == f"{HERE}/v1/{encoded}/now?q={encoded}&x=1"


def test_numbers_booleans_and_documents_are_written_as_json():
    assert (
        url_of(f"{HERE}/${{n}}/${{b}}?d=${{d}}", n=1.5, b=True, d={"a": [1]})
        == f"{HERE}/1.5/true?d=%7B%22a%22%3A%5B1%5D%7D"
    )


def test_a_value_is_never_taken_for_a_template():
    assert url_of(f"{HERE}/${{a}}", a="${b}", b="secret") == f"{HERE}/%24%7Bb%7D"


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), NO_SURROGATES, min_size=3))
def test_no_value_changes_host_path_parts_or_names_of_the_query(given):
    url = f"{HERE}:8443/one/${{a}}/x-${{b}}?k=${{c}}&fixed=1"
    refused = written = ""
    try:
        written = url_of(url, **given)
    except ToolError as refusal:
        refused = refusal.message
    if refused:
        assert "a value leaves a part of the path" in refused or "longer than" in refused
        return
    parts = urlsplit(written)
    assert (parts.scheme, parts.netloc) == ("https", "api.example.com:8443")
    segments = [unquote(part, errors="surrogatepass") for part in parts.path.split("/")]
    assert segments == ["", "one", given["a"], f"x-{given['b']}"]
    assert parse_qsl(parts.query, keep_blank_values=True, errors="surrogatepass") == [("k", given["c"]), ("fixed", "1")]


@pytest.mark.parametrize("value", ["", ".", "..", "a/../b", "..\\x", "../../etc"])
def test_a_value_that_leads_elsewhere_is_refused_and_not_repeated(value):
    with pytest.raises(ToolError, match=r"a value leaves a part of the path empty") as refusal:
        url_of(f"{HERE}/users/${{a}}/x", a=value)
    assert refusal.value.kind is Kind.VALIDATION


@pytest.mark.parametrize(
    ("url", "value"),
    [("/a/.${a}", "."), ("/a/%2e${a}/b", "."), ("/a/${a}${b}", "."), ("/${a}?x", ".."), ("/a.${a}", None)],
)
def test_dots_count_together_with_what_stands_around_them(url, value):
    if value is None:
        assert url_of(HERE + url, a="..") == f"{HERE}/a..."
    else:
        with pytest.raises(ToolError, match="a value leaves"):
            url_of(HERE + url, a=value, b="")


def test_a_dot_in_the_query_leads_nowhere():
    assert url_of(f"{HERE}/a?x=${{a}}", a="..") == f"{HERE}/a?x=.."


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h.example?q=${a}", "https://h.example/?q=x"),
        ("https://h.example/${a}", "https://h.example/x"),
        ("https://h.example//a//${a}/", "https://h.example//a//x/"),
        ("https://h.example/é/${a}?ü=${a}", "https://h.example/%C3%A9/x?%C3%BC=x"),
        ("https://h.example/%2F/${a}#top", "https://h.example/%2F/x"),
        ("HTTPS://H.Example:443/${a}", "https://h.example/x"),
        ("https://h.example/a?b?c=${a}?d", "https://h.example/a?b?c=x?d"),
    ],
)
def test_what_the_author_wrote_stays(url, expected):
    assert url_of(url, a="x") == expected


def test_the_query_map_is_added_and_empty_values_are_left_out():
    query = {"q": "${city}", "tag": "${tag}", "lang": "en", "both": "${a}-${tag}", "a b": "ü"}
    written = write(url=f"{HERE}/x?k=1", query=query, given={"city": "A&B", "a": "1"}).url
    assert written.target == "/x?k=1&q=A%26B&lang=en&a%20b=%C3%BC"


@pytest.mark.parametrize("value", ["", None, ABSENT])
def test_a_query_of_nothing_but_empty_values_is_no_query(value):
    assert str(write(url=f"{HERE}/x", query={"q": "${city}"}, given={"city": value}).url) == f"{HERE}/x"


@pytest.mark.parametrize(
    ("url", "expected"),
    [("/x", "/x?a=1"), ("/x?b=2", "/x?b=2&a=1"), ("/x?", "/x?a=1"), ("", "/?a=1"), ("/x#f", "/x?a=1")],
)
def test_a_request_without_slots_is_written_once(url, expected):
    template = compile_call(http_call(url=HERE + url, query={"a": "1", "empty": ""}))
    first, second = (template.write(lambda slot: pytest.fail(str(slot))).url for _ in range(2))
    assert first.target == expected
    assert first is second


def test_a_missing_value_is_named_where_it_is_missing():
    with pytest.raises(ToolError, match=r"^url: \$\{city\} has no value; give city, or give the parameter a default$"):
        url_of(f"{HERE}/${{city}}")
    with pytest.raises(ToolError, match=r"^headers.X-A: \$\{user.name\} has no value; give user with"):
        write(url=HERE, headers={"X-A": "${user.name}"}, given={"user": {}})
    with pytest.raises(ToolError, match=r"^body: \$\{items\[3\]\} has no value"):
        write(url=HERE, method="POST", body="${items[3]}", given={"items": [1]})


def test_a_url_that_gets_too_long_is_refused():
    with pytest.raises(ToolError, match="longer than 8000 characters once it is filled"):
        url_of(f"{HERE}/?q=${{a}}", a="x" * 8_000)


@pytest.mark.spec("S1-29")
def test_header_values_are_filled():
    headers = {"User-Agent": "MyApp/${version}", "X-Cost": "$$${price}", "X-Plain": "{x}"}
    written = write(url=HERE, headers=headers, given={"version": "2.1", "price": 5})
    assert written.headers == {"User-Agent": "MyApp/2.1", "X-Cost": "$5", "X-Plain": "{x}"}


@pytest.mark.spec("S1-30")
def test_values_are_escaped_inside_the_strings_of_a_json_body():
    body = body_of('{"text": "Hi ${name}, \\"${name}\\""}', name='A "B"\n\\')
    assert json.loads(body) == {"text": 'Hi A "B"\n\\, "A "B"\n\\"'}


@pytest.mark.spec("S1-30")
def test_a_string_that_is_one_slot_keeps_the_type_of_the_value():
    body = '{"a": "${x}", "b": ${x}, "c": ["${x}", "v${y}"]}'
    assert json.loads(body_of(body, x=[1, "2", None], y=3)) == {
        "a": [1, "2", None],
        "b": [1, "2", None],
        "c": [[1, "2", None], "v3"],
    }


@pytest.mark.spec("S1-30")
def test_literal_braces_stay_and_an_empty_template_is_no_body():
    assert body_of('{"a": {"b": "{c}"}, "d": "$${e}"}') == '{"a": {"b": "{c}"}, "d": "${e}"}'
    assert write(url=HERE, method="POST", body="").body is None


@given(st.fixed_dictionaries({"x": ANY_JSON, "y": ANY_JSON}))
def test_a_json_body_is_json_with_the_members_of_its_author_for_all_values(given):
    body = '{"a": "${x}", "b": "-${y}-", "c": ${y}, "d": "\\\\${x}", "e": ["\\"", "${x}"]}'
    document = json.loads(body_of(body, **given))
    assert list(document) == ["a", "b", "c", "d", "e"]
    assert (document["a"], document["c"], document["e"]) == (given["x"], given["y"], ['"', given["x"]])
    text = (
        given["y"] if isinstance(given["y"], str) else json.dumps(given["y"], ensure_ascii=False, separators=(",", ":"))
    )
    assert document["b"] == f"-{text}-"
    assert document["d"].startswith("\\")


@pytest.mark.parametrize(
    "body",
    [
        '{"a": 1${x}}',
        "{'a': ${x}}",
        '{"a": "\\${x}"}',
        '{"a": "\\u00${x}"}',
        "tru${x}",
        "${x}${x}",
        '{"a": "${x}"',
        "a=${x}",
        '{"a": -${x}}',
        "NaN",
        "[" * 100_000,
    ],
)
def test_a_body_that_can_never_be_json_is_refused_where_json_is_promised(body):
    found = problems(method="POST", headers={"Content-Type": "application/json"}, body=body)
    assert found == [
        "body: is not JSON for any values of its slots; correct it, or name another Content-Type in headers"
    ]


@pytest.mark.parametrize("body", ['{"${x}": 1}', '{"a-${x}": 1}', "{${x}: 1}", '[{"a": {"${x}" : 1}}]'])
def test_a_value_cannot_choose_the_name_of_a_member(body):
    found = problems(method="POST", headers={"content-type": "application/vnd.api+json"}, body=body)
    assert found == ["body: a slot cannot be the name of a member; write the names out"]


def test_a_form_encodes_and_a_text_takes_values_as_they_are():
    assert body_of("a=${x}&b=1", "application/x-www-form-urlencoded", x="1&2 3") == "a=1%262%203&b=1"
    assert body_of("Dear ${x}", "text/plain", x='"A" & {B}') == 'Dear "A" & {B}'


@pytest.mark.parametrize("kind", ["application/xml", "text/xml; charset=utf-8", "application/soap+xml"])
@given(value=st.text(st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="\ufffe\uffff")))
def test_values_are_escaped_in_xml(kind, value):
    written = body_of('<a b="${x}">${x}</a>', kind, x=value)
    root = ET.fromstring(written)
    assert (root.get("b"), root.text or "", len(root)) == (value, value, 0)


@pytest.mark.parametrize("letter", ["\x00", "\x1b", "\ud800", "\uffff"])
def test_what_xml_has_no_letter_for_is_refused(letter):
    with pytest.raises(ToolError, match="cannot stand in XML"):
        body_of("<a>${x}</a>", "text/xml", x=f"a{letter}")


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/ndjson", "application/vnd.some+ndjson"])
@given(value=st.text() | st.integers() | st.lists(st.text(max_size=5), max_size=3))
def test_lines_of_json_stay_as_many_as_they_were(kind, value):
    try:
        written = body_of('{"index": {}}\n{"a": "${x}", "b": "<${x}>"}\n\n${x}\n', kind, x=value)
    except ToolError as refusal:
        assert "surrogate" in refusal.message  # noqa: PT017 - any other refusal is raised by what comes next
        return
    lines = written.split("\n")
    assert len(lines) == 5
    assert json.loads(lines[0]) == {"index": {}}
    assert json.loads(lines[1])["a"] == json.loads(lines[3]) == value
    assert json.loads(lines[1]).keys() == {"a", "b"}
    assert lines[2] == lines[4] == ""


def test_a_line_that_can_never_be_json_is_refused():
    found = problems(method="POST", headers={"Content-Type": "application/x-ndjson"}, body='{"a": 1}\n{"b": ${x}')
    assert any("is not JSON for any values of its slots" in problem for problem in found)


def test_slots_in_parts_of_a_multipart_body_are_refused():
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    found = problems(method="POST", headers=kind, body="--x\r\n\r\n${x}\r\n--x--")
    assert any("multipart takes no slots" in problem for problem in found)
    assert problems(method="POST", headers=kind, body="--x\r\n\r\nfixed\r\n--x--") == []


@pytest.mark.parametrize("body", ['{"a": ${x}', " [${x}", '{"a": "x', "[1,]", '{"${x}": 1}'])
def test_without_a_type_what_begins_as_json_and_is_none_is_refused(body):
    assert any(problem.startswith("body: ") for problem in problems(method="POST", body=body))


def test_without_a_type_what_reads_as_json_is_json():
    as_json = write(url=HERE, method="POST", body='{"a": "${x}"}', given={"x": 1})
    as_text = write(url=HERE, method="POST", body="a ${x}", given={"x": "b"})
    assert (as_json.body, as_json.headers) == (b'{"a": 1}', {"Content-Type": "application/json"})
    assert (as_text.body, as_text.headers) == (b"a b", {"Content-Type": "text/plain; charset=utf-8"})


def test_half_a_character_is_refused_in_a_body():
    with pytest.raises(ToolError, match="body: holds half of a surrogate pair"):
        body_of("a ${x}", "text/plain", x="\ud800")


@pytest.mark.spec("S1-37")
@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://example.com/x", "must begin with http:// or https://"),
        ("file:///etc/passwd", "must begin with http:// or https://"),
        ("${u}/x", "must begin with http:// or https://"),
        ("example.com/x", "must begin with http:// or https://"),
        ("", "must begin with http:// or https://"),
        ("http${s}://example.com", "must begin with http:// or https://"),
        ("https://${host}/x", "scheme, host and port take no slots"),
        ("https://api.${host}/x", "scheme, host and port take no slots"),
        ("https://example.com:${port}/x", "scheme, host and port take no slots"),
        ("https://example.com${path}", "scheme, host and port take no slots"),
        ("https://user:pw@example.com/", "user name or password"),
        ("https://exa mple.com/", "not allowed"),
        ("https://example.com/a b", "not allowed"),
        ("https://example.com/\n", "not allowed"),
        ("https://127.1/", "not an IPv4 address"),
        ("https://example.com:99999/", "port"),
        ("https://example.com/#${a}", "never sent"),
        ("https://", "scheme, host and port take no slots"),
    ],
)
def test_a_url_that_is_not_written_out_or_not_in_the_grammar_is_a_problem(url, problem):
    (found,) = problems(url=url)
    assert found.startswith("url: ")
    assert problem in found


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"Host": "x"}, "is set by Toolcrib or refused"),
        ({"content-length": "1"}, "is set by Toolcrib or refused"),
        ({"Transfer-Encoding": "chunked"}, "is set by Toolcrib or refused"),
        ({"Connection": "close"}, "is set by Toolcrib or refused"),
        ({"Proxy-Authorization": "x"}, "is set by Toolcrib or refused"),
        ({"X-${a}": "x"}, "a name takes no slots"),
        ({"X A": "x"}, "letters, digits and '-' only"),
        ({"X-A": "x\r\nEvil: 1"}, "control character"),
        ({"X-A": "${a}\x00"}, "control character"),
        ({"X-A": "1", "x-a": "2"}, "stands twice"),
        ({"X-A": "${"}, "opens no slot"),
    ],
)
def test_headers_that_are_not_for_a_tool_are_problems(headers, problem):
    (found,) = problems(headers=headers)
    assert found.startswith("headers.")
    assert problem in found
    assert "Evil" not in found


def test_everything_that_is_wrong_is_said_at_once():
    found = problems(
        url="ftp://x",
        method="FOO",
        query={"${a}": "1"},
        headers={"Host": "x"},
        body="${",
        extract="$.a[",
        success=frozenset(),
    )
    assert [problem.partition(":")[0] for problem in found] == [
        "method",
        "url",
        "query.${a}",
        "headers.Host",
        "body",
        "extract",
    ]


def test_a_body_that_is_not_sent_and_a_type_that_a_value_chooses_are_problems():
    assert problems(body="x") == ["body: GET sends none; leave it empty, or use POST, PUT, PATCH or DELETE"]
    headers = {"Content-Type": "application/${kind}"}
    assert problems(method="PUT", body="x", headers=headers) == [
        "body: Content-Type says how values are written into it; write it without slots"
    ]


@pytest.mark.spec("S1-101")
def test_a_json_path_into_a_text_is_a_problem():
    assert problems(encoding="text", extract="a(b)") == []
    assert problems(encoding="text", extract="$.a") == [
        "extract: a JSONPath looks into JSON, and the answer is read as text; read it as json, or write a pattern"
    ]


def test_a_slot_that_looks_into_what_has_nothing_in_it_is_a_problem():
    url = f"{HERE}/${{city.name}}/${{items.id}}/${{user[0]}}/${{user.name}}/${{items[0]}}/${{other.x}}"
    assert problems(url=url) == [
        "url: ${city.name} looks for an object, and city is declared as string; correct one of the two",
        "url: ${items.id} looks for an object, and items is declared as array; correct one of the two",
        "url: ${user[0]} looks for an array, and user is declared as object; correct one of the two",
    ]


@pytest.mark.spec("S1-102")
def test_an_answer_can_only_be_used_by_a_later_call():
    calls = (
        http_call(name="first", url=f"{HERE}/${{second.id}}"),
        http_call(name="second", url=f"{HERE}/${{first.id}}?x=${{second}}"),
    )
    assert check_http(http_run(*calls), {}) == [
        "calls[0].url: ${second.id} asks for the answer of a call that comes later, or of this one; put second before it",
        "calls[1].url: ${second} asks for the answer of a call that comes later, or of this one; put second before it",
    ]
    assert check_http(http_run(), {}) == ["calls: holds none; write at least one"]


def test_the_example_of_the_document_is_right():
    call = http_call(
        url="https://api.weatherapi.com/v1/current.json?q=${city}&key=${WEATHER_API_KEY}",
        headers={"User-Agent": "MyApp/${version}"},
        success=frozenset({200}),
        extract="$.current.condition.text",
    )
    assert check_http(http_run(call), ARGUMENTS) == []


def test_doubled_braces_are_text_beside_what_stands_around_them():
    assert read_braces("a {{b}} c {{d}} e {f} g") == ("a {b} c {d} e ", read_braces("{f}")[0], " g")
    assert [slot.written for slot in read_braces("${TOKEN:-none}{city}${secret:KEY}")] == [
        "${TOKEN:-none}",
        "{city}",
        "${secret:KEY}",
    ]
