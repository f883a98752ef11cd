"""Any document is taken and comes back the same, or is refused in words."""

import json
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolcrib import Bundle, Kind, ToolError
from toolcrib.features.bundles.definition import tool_to_wire
from toolcrib.features.bundles.format import read_bundle, read_stored_bundle, read_stored_tool, read_tool
from toolcrib.lib.document_format import write_bundle, write_tool
from toolcrib.model.bundle import Kept

T = TypeVar("T")
TEXT = st.text(max_size=12) | st.sampled_from(
    ["${city}", "${", "$.a", "https://x.example/${city}", "//", "/*", "go", "http"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    *(
        "schemaVersion",
        "bundleID",
        "toolID",
        "id",
        "slug",
        "version",
        "displayName",
        "description",
        "type",
        "isEnabled",
    ),
    *(
        "isBuiltIn",
        "argSchema",
        "outputSchema",
        "impl",
        "tags",
        "preProcessors",
        "createdAt",
        "softDeletedAt",
        "source",
        "unknown",
    ),
]
CALL_KEYS = [
    *("name", "method", "urlTemplate", "query", "headers", "bodyTemplate", "successCodes", "timeoutMs"),
    *("responseEncoding", "extractExpr", "errorMode", "retry", "model", "goFunc", "calls"),
]
LIKELY = {
    "description": TEXT,
    "displayName": TEXT,
    "tags": st.lists(st.from_regex(r"[a-z_][a-z0-9_-]{0,5}", fullmatch=True), unique=True, max_size=3),
    "preProcessors": st.lists(JSON, max_size=2),
    "argSchema": st.fixed_dictionaries({}, optional={"properties": st.just({"city": {}}), "type": st.just("object")}),
    "unknown": JSON,
}
LIKELY_IN_CALL = {
    "method": st.sampled_from(["GET", "POST", "DELETE"]),
    "query": st.dictionaries(TEXT, TEXT, max_size=2),
    "headers": st.dictionaries(st.sampled_from(["Accept", "X-A"]), TEXT, max_size=2),
    "bodyTemplate": TEXT,
    "successCodes": st.lists(st.integers(100, 599), max_size=3),
    "timeoutMs": st.integers(1, 3_600_000),
    "responseEncoding": st.sampled_from(["json", "text"]),
    "extractExpr": st.sampled_from(["", "$", "$.a[0]", "(a+)"]),
    "errorMode": st.sampled_from(["fail", "empty"]),
    "retry": st.fixed_dictionaries({"max_attempts": st.integers(1, 5)}, optional={"max_delay": st.floats(0, 9)}),
    "unknown": JSON,
}
ANY_CHANGE = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3)
ANY_CALL_CHANGE = st.dictionaries(st.sampled_from(CALL_KEYS), JSON, max_size=3)
quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def taken(read: Callable[[], T]) -> T | None:
    """What was read; None for what was refused in words."""
    try:
        return read()
    except ToolError as error:
        if error.kind is not Kind.VALIDATION or not error.message.strip() or not error.details:
            raise
        return None


@pytest.fixture
def round_trip(bundle_id):
    """Send a document; what is taken comes back the same from the store and from a client."""
    bundle = Bundle(id=bundle_id, slug="reports")

    def travel(document: dict) -> None:
        sent = taken(lambda: read_tool(document, bundle_id=bundle_id, slug="weather", version="v2"))
        if sent is None:
            return
        data = write_tool(sent.document)
        stored = read_stored_tool(data, bundle=bundle, place="x.json")
        assert stored.document == sent.document
        assert write_tool(stored.document) == data
        assert stored.tool.content_hash == sent.tool.content_hash
        kept = Kept(
            id=stored.tool.id, bundle=bundle, slug="weather", version="v2", tool=stored.tool, document=stored.document
        )
        wire = json.loads(json.dumps(tool_to_wire(kept)))
        again = read_tool(wire, bundle_id=bundle_id, slug="weather", version="v2")
        assert again.tool.content_hash == sent.tool.content_hash

    return travel


@quick
@given(document=st.dictionaries(TEXT | st.sampled_from(KEYS), JSON, max_size=6) | JSON)
def test_any_json_is_taken_or_refused_in_words(round_trip, document):
    round_trip(document)


@quick
@given(changes=ANY_CHANGE)
def test_a_document_with_anything_in_its_keys_is_taken_or_refused_in_words(round_trip, document, changes):
    round_trip(document(**changes))


@quick
@given(changes=ANY_CALL_CHANGE, several=st.booleans())
def test_a_request_with_anything_in_its_keys_is_taken_or_refused_in_words(round_trip, document, changes, several):
    call = {"urlTemplate": "https://x.example/${city}", **changes}
    round_trip(document(impl={"calls": [{"name": "a", **call}, {**call, "name": "b"}]} if several else call))


@quick
@given(
    keys=st.fixed_dictionaries({}, optional=LIKELY),
    call=st.fixed_dictionaries({}, optional=LIKELY_IN_CALL),
    is_go=st.booleans(),
)
def test_what_is_likely_to_be_right_travels_unchanged(round_trip, document, keys, call, is_go):
    impl = {"goFunc": "f"} if is_go else {"urlTemplate": "https://x.example/${city}", **call}
    round_trip(document(type="go" if is_go else "http", impl=impl, **keys))


@quick
@given(data=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_file_is_read_or_refused_in_words(bundle_id, data):
    bundle = Bundle(id=bundle_id, slug="reports")
    assert taken(lambda: read_stored_tool(data, bundle=bundle, place="x.json")) is None
    assert taken(lambda: read_stored_bundle(data, bundle_id=bundle_id)) is None


@quick
@given(
    document=st.dictionaries(TEXT | st.sampled_from(["slug", "displayName", "isEnabled", "bundleID"]), JSON, max_size=5)
    | JSON
)
def test_any_bundle_is_taken_or_refused_in_words(bundle_id, document):
    bundle = taken(lambda: read_bundle(document, bundle_id=bundle_id))
    assert bundle is None or read_stored_bundle(write_bundle(bundle), bundle_id=bundle_id) == bundle
