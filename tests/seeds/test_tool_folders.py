"""The guide's own tool folders, unchanged: built, loaded at start, and called as an agent calls them."""

import json
import shutil

import pytest

from toolcrib import Call, Crib, Kind
from toolcrib.build import build
from toolcrib.testing import FakeContext, call_tool


@pytest.fixture
def project(fixtures, tmp_path):
    shutil.copytree(fixtures / "tool_folders" / "tools", tmp_path / "tools")
    return tmp_path


def change_schema(project, folder, change):
    file = project / "tools" / folder / "schema.json"
    schema = json.loads(file.read_text())
    change(schema)
    file.write_text(json.dumps(schema, indent=2))


@pytest.fixture
async def crib(project):
    built = build(project / "tools")
    assert built.problems == ()
    async with Crib(project, builtins={"enabled": False}) as crib:
        yield crib


@pytest.mark.spec("S2-21")
async def test_the_search_of_the_guide_fills_in_its_default(crib):
    result = await crib.call("kb_search", query="order")
    assert result.ok, result.error
    # Seven articles match, and five were asked for by default.
    assert (result.value["total"], len(result.value["results"])) == (7, 5)
    one = await crib.call("kb_search", query="order", top_k=1)
    assert (one.value["total"], len(one.value["results"])) == (7, 1)


@pytest.mark.spec("S2-21", "S2-18")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"query": "order", "top_k": 11}, "top_k"),
        ({"query": "order", "top_k": 0}, "top_k"),
        ({"query": "x" * 201}, "query"),
        ({"query": "order", "top_k": "5"}, "top_k"),
    ],
)
async def test_the_search_of_the_guide_refuses_what_is_out_of_bounds(crib, arguments, named):
    result = await crib.call("kb_search", arguments)
    assert result.error.kind is Kind.VALIDATION
    assert named in result.error.message
    assert result.error.details["gate"] == "arguments"


@pytest.mark.spec("S2-73")
@pytest.mark.parametrize("mode", ["text", "voice"])
async def test_a_limit_that_only_a_description_names_is_none(crib, mode):
    allowed = await crib.call(Call(name="kb_search", arguments={"query": "order", "top_k": 10}, mode=mode))
    assert len(allowed.value["results"]) == 7
    by_default = await crib.call(Call(name="kb_search", arguments={"query": "order"}, mode=mode))
    assert len(by_default.value["results"]) == 5
    refused = await crib.call(Call(name="kb_search", arguments={"query": "order", "top_k": 11}, mode=mode))
    assert refused.error.kind is Kind.VALIDATION


@pytest.mark.spec("S2-22")
async def test_the_calendar_of_the_guide_loads_with_a_warning_and_cannot_be_satisfied(crib, project):
    tool = crib.find("calendar_create_event").tool
    assert any("required but undefined: end_time" in warning for warning in tool.warnings)
    assert tool.requires_confirmation
    assert tool.modes == {"text"}
    arguments = {"title": "Lunch", "start_time": "2026-05-01T12:00:00Z", "attendees": ["ada@example.com"]}
    spoken = await crib.call(Call(name=tool.name, arguments=arguments, mode="voice"))
    assert spoken.error.kind is Kind.MODE_RESTRICTED
    for given in (arguments, {**arguments, "end_time": "2026-05-01T13:00:00Z"}):
        written = await crib.call(Call(name=tool.name, arguments=given, mode="text"))
        assert written.error.kind is Kind.VALIDATION
        assert "the schema cannot be satisfied" in written.error.message
    assert not build(project / "tools", strict=True).ok


@pytest.mark.spec("S2-22")
def test_the_listing_shows_that_the_calendar_asks_and_is_for_text_only(project, monkeypatch, cli):
    monkeypatch.chdir(project)
    assert build(project / "tools").ok
    shown = cli("list", "--json")
    assert shown.code == 0
    listed = {facts["name"]: facts for facts in json.loads(shown.out)}
    calendar, search = listed["calendar_create_event"], listed["kb_search"]
    assert (calendar["requiresConfirmation"], calendar["models"]["modes"]) == (True, ["text"])
    assert (search["requiresConfirmation"], search["models"]["modes"]) == (False, ["text", "voice"])


@pytest.mark.spec("S2-22", "S2-18")
async def test_the_calendar_asks_for_confirmation_once_its_gap_is_closed(project):
    def define(schema):
        schema["parameters"]["properties"]["end_time"] = {"type": "string", "format": "date-time"}

    change_schema(project, "calendar-create-event", define)
    assert build(project / "tools").ok
    arguments = {
        "title": "Lunch",
        "start_time": "2026-05-01T12:00:00Z",
        "end_time": "2026-05-01T13:00:00Z",
        "attendees": ["ada@example.com"],
    }
    async with Crib(project, builtins={"enabled": False}) as crib:
        asked = await crib.call("calendar_create_event", arguments)
        assert asked.error.kind is Kind.CONFIRMATION_REQUIRED
        for wrong in ([], ["nobody"]):
            refused = await crib.call("calendar_create_event", {**arguments, "attendees": wrong})
            assert refused.error.kind is Kind.VALIDATION
            assert "attendees" in refused.error.message
        token = asked.error.details["confirmation"]
        done = await crib.call(Call(name="calendar_create_event", arguments=arguments, confirmation=token))
        assert done.error is None or done.error.kind is not Kind.CONFIRMATION_REQUIRED


@pytest.mark.spec("S2-17")
async def test_a_call_without_a_required_parameter_is_refused_and_the_parameter_named(crib):
    result = await crib.call("kb_search", top_k=3)
    assert result.error.kind is Kind.VALIDATION
    assert "query is missing (string)" in result.error.message
    assert result.error.details["gate"] == "arguments"


@pytest.mark.spec("S2-18")
@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ({"type": "string", "minLength": 2}, "ab", "a"),
        ({"type": "string", "maxLength": 2}, "ab", "abc"),
        ({"type": "number", "minimum": 2}, 2, 1.9),
        ({"type": "number", "maximum": 2}, 2, 2.1),
        ({"enum": ["a", "b"]}, "a", "c"),
        ({"type": "string", "format": "ipv4"}, "127.0.0.1", "127.0.0.256"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else None,
)
async def test_every_bound_is_kept_at_each_call_and_the_refusal_names_the_property(project, rule, good, bad):
    change_schema(
        project,
        "kb-search",
        lambda schema: schema["parameters"]["properties"].update(more={**rule, "description": "-"}),
    )
    assert build(project / "tools").ok
    async with Crib(project, builtins={"enabled": False}) as crib:
        assert (await crib.call("kb_search", query="order", more=good)).ok
        refused = await crib.call("kb_search", query="order", more=bad)
    assert refused.error.kind is Kind.VALIDATION
    assert "more" in refused.error.message


@pytest.mark.spec("S2-08")
def test_the_description_is_in_what_both_providers_are_shown(project):
    assert build(project / "tools").ok
    shown = json.loads((project / "tools" / "tool_registry.json").read_text())["tools"]["kb_search"]["providerSchemas"]
    description = "Search knowledge base with filters. Returns structured results with citations."
    assert shown["openai"]["function"]["description"] == description
    assert shown["geminiNative"]["description"] == description


@pytest.mark.spec("S2-08")
def test_an_empty_description_fails_the_build(project):
    change_schema(project, "kb-search", lambda schema: schema.update(description=" "))
    built = build(project / "tools")
    assert [problem for problem in built.problems if "description" in problem]
    assert not built.written


@pytest.mark.spec("S2-30")
async def test_the_whole_document_can_be_had_by_name_and_nothing_for_an_unknown_one(crib, project):
    text = (project / "tools" / "ignore-user" / "doc.md").read_text()
    assert crib.documentation("ignore_user") == crib.documentation("ignore-user") == text
    assert crib.documentation("nobody") == ""


@pytest.mark.spec("S2-65")
async def test_the_degraded_answer_of_the_guide_reaches_the_caller(crib):
    whole = await crib.call("page_title", url="https://example.com/")
    assert whole.value == {"url": "https://example.com/", "title": "Example Domain"}
    degraded = await crib.call("page_title", url="https://example.org/a")
    assert degraded.value == {"url": "https://example.org/a", "title": "example.org", "degraded": True}
    broken = await crib.call("page_title", url="http://example.org/a")
    assert broken.error.kind is Kind.INTERNAL
    assert broken.error.partial_side_effects


DRAFT = """
export async function execute({ args }) {
  return { ok: true, data: { prompt: `${args.subject}, in oil` } };
}
"""
GENERATE = """
export async function execute({ args, context }) {
  await context.messaging.send({ type: 'image', prompt: args.subject });
  context.audit.log('image_generated', { prompt: args.subject });
  return { ok: true, data: { image: args.subject } };
}
"""
RESERVE = """
import fs from 'node:fs';
import { ErrorType } from '../_core/error-types.js';

export async function execute({ args }) {
  const file = `${process.env.TOOLCRIB_WORKSPACE}/stock.json`;
  const stock = JSON.parse(fs.readFileSync(file, 'utf8'));
  if (stock.places < args.places) {
    const message = `${stock.places} places are left`;
    return { ok: false, error: { type: ErrorType.CONFLICT, message, retryable: false } };
  }
  fs.writeFileSync(file, JSON.stringify({ places: stock.places - args.places }));
  return { ok: true, data: { reserved: args.places } };
}
"""


def add_folder(project, folder, handler, properties, **fields):
    """A tool folder of another purpose, with the documents of the search."""
    shutil.copytree(project / "tools" / "kb-search", project / "tools" / folder)
    (project / "tools" / folder / "handler.js").write_text(handler)
    document = project / "tools" / folder / "doc.md"
    text = document.read_text()
    document.write_text(text[: text.index("### Example 1")] + text[text.index("## Common Mistakes") :])
    parameters = {"type": "object", "additionalProperties": False, "properties": properties}
    facts = {"toolId": folder.replace("-", "_"), "parameters": {**parameters, "required": list(properties)}, **fields}
    change_schema(project, folder, lambda schema: schema.update(facts))


ACTION = {"category": "action", "sideEffects": "writes", "idempotent": False}


@pytest.mark.spec("S2-12", "S2-63")
async def test_a_plan_runs_unasked_and_the_handler_of_its_commit_only_once_it_is_confirmed(project):
    subject = {"subject": {"type": "string", "description": "What to show"}}
    add_folder(project, "image-draft-prompt", DRAFT, subject, category="utility", sideEffects="none")
    add_folder(project, "image-generate", GENERATE, subject, **ACTION, requiresConfirmation=True)
    assert build(project / "tools").problems == ()
    async with Crib(project, builtins={"enabled": False}) as crib:
        plan = await crib.call("image_draft_prompt", subject="a crib")
        wanted = {"subject": plan.value["prompt"]}
        silent, willing = FakeContext(confirm=False), FakeContext()
        asked = await call_tool(crib, "image_generate", wanted, context=silent)
        assert asked.error.kind is Kind.CONFIRMATION_REQUIRED
        assert (silent.sent, silent.audited) == ([], [])
        token = asked.error.details["confirmation"]
        for name, arguments in (("image_generate", {"subject": "a ship"}), ("image_generate", wanted)):
            foreign = await crib.call(Call(name=name, arguments=arguments, confirmation=token[:-2], caller="test"))
            assert foreign.error.kind is Kind.CONFIRMATION_REQUIRED
        done = await call_tool(crib, "image_generate", wanted, context=willing)
    assert done.value == {"image": "a crib, in oil"}
    assert willing.sent == [{"type": "image", "prompt": "a crib, in oil"}]
    assert willing.audited == [{"event": "image_generated", "data": {"prompt": "a crib, in oil"}}]


@pytest.mark.spec("S2-64")
async def test_a_handler_that_finds_a_conflict_has_modified_nothing(project):
    places = {"places": {"type": "integer", "description": "How many", "minimum": 1}}
    add_folder(project, "seat-reserve", RESERVE, places, **ACTION, requires=["fs.read", "fs.write"])
    assert build(project / "tools").problems == ()
    workspace = project / "workspace"
    workspace.mkdir()
    stock = workspace / "stock.json"
    stock.write_text('{"places":3}')
    granted = {"grants": {"*": ["fs.read", "fs.write"]}, "workspace": {"folder": workspace}}
    async with Crib(project, builtins={"enabled": False}, **granted) as crib:
        refused = await crib.call("seat_reserve", places=4)
        assert (refused.error.kind, refused.error.message) == (Kind.CONFLICT, "3 places are left")
        assert (refused.error.retryable, refused.error.partial_side_effects) == (False, False)
        assert stock.read_text() == '{"places":3}'
        assert (await crib.call("seat_reserve", places=2)).value == {"reserved": 2}
        assert stock.read_text() == '{"places":1}'


@pytest.mark.spec("S2-03")
async def test_a_running_crib_keeps_the_set_and_the_code_that_it_began_with(crib, project):
    handler = project / "tools" / "kb-search" / "handler.js"
    handler.write_text("export async function execute() { return { ok: true, data: 'new' }; }\n")
    shutil.copytree(project / "tools" / "page-title", project / "tools" / "new-tool")
    change_schema(project, "new-tool", lambda schema: schema.update(toolId="new_tool"))
    assert build(project / "tools").ok
    assert (await crib.call("kb_search", query="order")).value != "new"
    assert (await crib.call("new_tool", url="https://example.com/")).error.kind is Kind.NOT_FOUND
    async with Crib(project, builtins={"enabled": False}) as started_again:
        assert (await started_again.call("kb_search", query="order")).value == "new"
        assert (await started_again.call("new_tool", url="https://example.com/")).ok


@pytest.mark.spec("S2-03")
async def test_a_folder_that_changed_since_the_build_cannot_be_called_until_it_is_built_again(project):
    assert build(project / "tools").ok
    with (project / "tools" / "kb-search" / "doc.md").open("a") as file:
        file.write("\nOne more line.\n")
    async with Crib(project, builtins={"enabled": False}) as crib:
        result = await crib.call("kb_search", query="order")
        assert result.error.kind is Kind.NOT_FOUND
        assert "tools/kb-search is not built (changed since the build); run: crib build" in result.error.message
        assert [folder.name for _, folder in crib.registries.unbuilt()] == ["kb_search"]


async def test_where_the_operator_watches_a_new_build_counts_at_once_but_not_for_a_session_that_began_before(project):
    assert build(project / "tools").ok
    async with Crib(project, builtins={"enabled": False}, folders={"watch": True}) as crib:
        before = crib.session()
        call = Call(name="kb_search", arguments={"query": "order"}, session=before)
        assert (await crib.call(call)).value["total"] == 7
        handler = project / "tools" / "kb-search" / "handler.js"
        handler.write_text(
            "export async function execute({context}) { return { ok: true, data: context.session.toolsVersion }; }\n"
        )
        built = build(project / "tools")
        assert built.written
        assert (await crib.call("kb_search", query="order")).value == built.version
        assert (await crib.call(call)).value["total"] == 7
        assert "kb_search" in {tool.name for tool in crib.offered("text", before)}
        assert crib.find("kb_search", before).tool.content_hash != crib.find("kb_search").tool.content_hash
        after = crib.session()
        assert after.tools_version == built.version != before.tools_version
        assert (
            await crib.call(Call(name="kb_search", arguments={"query": "order"}, session=after))
        ).value == built.version
