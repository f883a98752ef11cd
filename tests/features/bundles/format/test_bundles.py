"""The document of a bundle: as a client sends it, as the store keeps it, as a client reads it."""

import pytest

from toolcrib import Bundle, Kind, ToolError
from toolcrib.features.bundles.definition import bundle_to_wire
from toolcrib.features.bundles.format import read_bundle, read_stored_bundle
from toolcrib.lib.document_format import write_bundle
from toolcrib.model.bundle import Owner

RIGHT = {"slug": "weather", "displayName": "Weather", "isEnabled": True}
OTHER = "018faf50-b7b6-7a01-9a05-a22a6e0af102"
VERSION_4 = "9b2b6f1c-8d0e-4c3a-9f0e-6d6f1f0a1b2c"
TIMES = {
    "created_at": "2024-05-14T13:44:00.000Z",
    "modified_at": "2024-06-01T09:17:10.000Z",
    "toggled_at": "2024-06-02T00:00:00.001Z",
    "soft_deleted_at": "2024-06-03T00:00:00.000Z",
}


@pytest.fixture
def problems(bundle_id):
    """Everything that is wrong with a document of a bundle; `...` leaves a key out."""

    def refused(to_bundle=bundle_id, **changes):
        document = {name: value for name, value in (RIGHT | changes).items() if value is not ...}
        with pytest.raises(ToolError) as caught:
            read_bundle(document, bundle_id=to_bundle)
        assert caught.value.kind is Kind.VALIDATION
        return list(caught.value.details["problems"])

    return refused


@pytest.mark.spec("S1-54")
def test_a_bundle_is_what_its_document_says(bundle_id):
    bundle = read_bundle({**RIGHT, "isEnabled": False, "description": "Of the sky."}, bundle_id=bundle_id.upper())
    assert bundle == Bundle(
        id=bundle_id,
        slug="weather",
        display_name="Weather",
        description="Of the sky.",
        enabled=False,
        schema_version="toolcrib-1",
    )
    assert read_bundle(RIGHT, bundle_id=bundle_id).description == ""


@pytest.mark.spec("S1-54")
@pytest.mark.parametrize("name", ["slug", "displayName", "isEnabled"])
def test_a_key_that_is_missing_is_named(problems, name):
    [problem] = problems(**{name: ...})
    assert problem.startswith(f'{name} is missing; write "{name}": ')


@pytest.mark.spec("S1-54")
@pytest.mark.parametrize("slug", ["", "a b", "a_b", "a.b", "a/b", "😀", "x" * 65, "\u212a", None, 5])
def test_a_bad_slug_is_refused(problems, slug):
    [problem] = problems(slug=slug)
    assert problem.startswith("slug: ")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("displayName", " ", "must not be empty"),
        ("displayName", 5, "must be text"),
        ("displayName", "x" * 257, "has 257 characters, the limit is 256"),
        ("isEnabled", "true", "must be true or false"),
        ("isEnabled", None, "must be true or false"),
        ("description", None, "must be text"),
        ("description", "x" * 10_001, "the limit is 10000"),
        ("isBuiltIn", True, "only what comes with Toolcrib is built in"),
        ("bundleID", OTHER, "its address; write that, or leave it out"),
        ("bundleID", None, "its address"),
        ("isEnbled", True, "is not a key of a bundle; write isEnabled"),
        ("tools", [], "is not a key of a bundle; remove it"),
    ],
)
def test_what_is_wrong_is_told(problems, name, value, words):
    [problem] = problems(**{name: value})
    assert problem.startswith(f"{name}: ")
    assert words in problem


@pytest.mark.spec("S1-15")
@pytest.mark.parametrize("bundle_id", [VERSION_4, "b1", ""])
def test_an_id_that_is_no_uuid_of_version_7_is_refused(problems, bundle_id):
    [problem] = problems(to_bundle=bundle_id)
    assert "is not a UUID of version 7" in problem


def test_everything_that_is_wrong_is_told_at_once(problems):
    told = problems(slug="a b", displayName="", isEnabled=1, colour="red")
    assert sorted(line.split(":")[0] for line in told) == ["colour", "displayName", "isEnabled", "slug"]


def test_what_a_client_read_can_be_written_again(bundle_id):
    bundle = Bundle(id=bundle_id, slug="weather", display_name="W", schema_version="toolcrib-1", **TIMES)
    assert read_bundle(bundle_to_wire(bundle), bundle_id=bundle_id) == Bundle(
        id=bundle_id, slug="weather", display_name="W", schema_version="toolcrib-1"
    )


@pytest.mark.parametrize("value", [float("nan"), "\ud800", {1: 2}, 2**64])
def test_what_json_cannot_say_is_refused(bundle_id, value):
    with pytest.raises(ToolError, match="description"):
        read_bundle({**RIGHT, "description": value}, bundle_id=bundle_id)


@pytest.mark.parametrize("times", [{}, TIMES])
def test_what_was_written_is_read_back(bundle_id, times):
    bundle = Bundle(
        id=bundle_id,
        slug="größe",
        display_name="Größe",
        description="a\nb",
        enabled=False,
        schema_version="xyz",
        **times,
    )
    assert read_stored_bundle(write_bundle(bundle), bundle_id=bundle_id) == bundle


def test_a_file_that_a_person_changed_is_read(bundle_id):
    text = f"""
    // the weather
    {{ "bundleID": "{bundle_id.upper()}", "colour": "blue", /* as people like it */
       "isEnabled": true, "displayName": "W // E", "slug": "weather", "createdAt": "2024-05-14T15:44:00+02:00" }}
    """
    bundle = read_stored_bundle(text.encode(), bundle_id=bundle_id)
    assert bundle.id == bundle_id
    assert bundle.display_name == "W // E"
    assert bundle.created_at == "2024-05-14T13:44:00.000Z"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "bundle.json:1:2: "),
        ("[]", "bundle.json:1: must be a JSON object, not []"),
        ('{"slug": "a"}', "bundle.json:1: displayName is missing"),
        ('{"slug": "a",\n"displayName": "A",\n"isEnabled": 1}', "bundle.json:3: isEnabled: must be true or false"),
        (
            '{"slug": "a", "displayName": "A", "isEnabled": true,\n"softDeletedAt": "soon"}',
            'bundle.json:2: softDeletedAt: "soon" is not a time',
        ),
        (
            f'{{"slug": "a", "displayName": "A", "isEnabled": true,\n\n"bundleID": "{OTHER}"}}',
            "bundle.json:3: bundleID: ",
        ),
    ],
)
def test_a_broken_file_says_where(bundle_id, text, words):
    with pytest.raises(ToolError) as caught:
        read_stored_bundle(text.encode(), bundle_id=bundle_id)
    assert words in caught.value.message


@pytest.mark.parametrize("owner", Owner)
def test_a_client_reads_who_keeps_a_bundle_and_when_what_happened(bundle_id, owner):
    bundle = Bundle(id=bundle_id, slug="weather", display_name="Weather", owner=owner, created_at=TIMES["created_at"])
    assert bundle_to_wire(bundle) == {
        "schemaVersion": "toolcrib-1",
        "bundleID": bundle_id,
        "slug": "weather",
        "displayName": "Weather",
        "description": "",
        "isEnabled": True,
        "isBuiltIn": owner is Owner.BUILTIN,
        "source": owner.value,
        "createdAt": TIMES["created_at"],
        "modifiedAt": None,
        "toggledAt": None,
        "softDeletedAt": None,
    }
