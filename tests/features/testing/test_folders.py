"""The guide's own tool folders: built, and tried by their documents and by recorded cases."""

import json
import shutil
from pathlib import Path

import pytest

from toolcrib import Crib
from toolcrib.build import build
from toolcrib.testing import check_sync

FOLDERS = Path(__file__).parents[2] / "seeds" / "fixtures" / "tool_folders" / "tools"
BLOCKED = {"duration_seconds": 60, "farewell_message": "This conversation is over."}
CASES = [
    {
        "name": "the client is told, the record says so, the host is asked",
        "arguments": BLOCKED,
        "context": {"mode": "voice"},
        "expect": {
            "contains": {"duration": 60},
            "sent": [{"type": "timeout", "durationSeconds": 60, "farewellMessage": BLOCKED["farewell_message"]}],
            "audit": [{"event": "user_timeout", "data": {"duration": 60}}],
            "intents": [
                {"type": "END_VOICE_SESSION", "after": "farewell_spoken"},
                {"type": "SUPPRESS_AUDIO", "value": True},
            ],
        },
    },
    {
        "name": "a session that is over",
        "arguments": BLOCKED,
        "context": {"session": {"isActive": False}},
        "expect": {"error": {"type": "SESSION_INACTIVE", "retryable": False}, "sent": [], "audit": []},
    },
    {
        "name": "a client that cannot be reached",
        "arguments": BLOCKED,
        "context": {"send": "fails"},
        "expect": {
            "error": {"type": "TRANSIENT", "retryable": True, "partialSideEffects": False},
            "sent": [],
            "audit": [],
        },
    },
    {
        "name": "a connection that is closed",
        "arguments": BLOCKED,
        "context": {"send": "closed"},
        "expect": {"error": {"type": "TRANSIENT"}, "audit": []},
    },
    {
        "name": "a duration that is too short",
        "arguments": {**BLOCKED, "duration_seconds": 5},
        "expect": {"error": {"type": "VALIDATION", "message_contains": "duration_seconds"}, "sent": []},
    },
]
DICE = "export async function execute() { return { ok: true, data: { eyes: Math.random() } }; }\n"


def before_result(text):
    """A document with its first example, and without what that example says of its result."""
    head, _, rest = text.partition("Result:")
    return head + rest[rest.index("## Common Mistakes") :]


@pytest.fixture(scope="module")
def crib(tmp_path_factory):
    """A crib over a project with the guide's folders, and cases for one of them."""
    project = tmp_path_factory.mktemp("project")
    shutil.copytree(FOLDERS, project / "tools")
    (project / "tests" / "cases").mkdir(parents=True)
    (project / "tests" / "cases" / "ignore_user.json").write_text(json.dumps(CASES))
    dice = project / "tools" / "throw-dice"
    shutil.copytree(FOLDERS / "page-title", dice)
    schema = json.loads((dice / "schema.json").read_text())
    (dice / "schema.json").write_text(json.dumps({**schema, "toolId": "throw_dice"}))
    (dice / "handler.js").write_text(DICE)
    (dice / "doc.md").write_text(before_result((dice / "doc.md").read_text()))
    assert build(project / "tools", project=project).problems == ()
    with Crib(project) as crib:
        yield crib


@pytest.mark.spec("S2-45", "S2-46", "S2-47", "S2-48", "S2-55")
def test_the_complete_example_does_in_every_situation_what_was_recorded(crib):
    results = check_sync(crib, "ignore_user")
    assert [result.name for result in results][-5:] == [case["name"] for case in CASES]
    assert all(result.passed for result in results)


@pytest.mark.spec("S2-59")
def test_results_with_their_sources_arrive_as_the_document_shows_them(crib):
    first, nothing, refused = check_sync(crib, "kb_search")
    source = "kb://returns#1"
    text = "An order may be sent back within 30 days. The refund follows once the parcel has arrived."
    found = {"title": "Returns and refunds", "snippet": text, "score": 2, "source": source}
    assert first.result.value == {"results": [found], "total": 7, "citations": [source]}
    assert nothing.result.value == {"results": [], "total": 0, "citations": []}
    assert refused.result.error.kind == "VALIDATION"


@pytest.mark.spec("S2-65")
def test_a_degraded_answer_arrives_as_the_document_shows_it(crib):
    known, degraded, broken = check_sync(crib, "page_title")
    assert known.result.value == {"url": "https://example.com/", "title": "Example Domain"}
    assert degraded.result.value["degraded"] is True
    assert broken.result.error.kind == "INTERNAL"
    assert known.warnings == ()


@pytest.mark.spec("S2-72")
def test_a_utility_of_a_folder_that_answers_by_chance_is_warned_of(crib):
    [result] = check_sync(crib, "throw_dice")
    assert result.passed
    assert result.warnings[0].startswith(
        "not deterministic: the same arguments gave something else the second time: value.eyes: "
    )
