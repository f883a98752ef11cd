"""The document's own request, three valid ones and three irregular ones, each read as its author meant it."""

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.document.writer import read_message, with_id
from toolcrib.lib.schema import compile_schema, fill_defaults


@pytest.fixture
def text_of(fixtures):
    return lambda name: (fixtures / "requests" / f"{name}.yaml").read_text()


@pytest.fixture
def template(text_of):
    return text_of("full_template")


@pytest.mark.spec("S0-28", "S0-12")
class TestTheFullTemplate:
    def test_it_loads_unchanged_and_without_a_warning(self, template):
        request = read_request(template, strict=True)
        assert request.text == template
        assert (request.id, request.name) == ("req_20240115_001", "github_stargazer_scraper")
        assert request.description == "Scrape users who starred a GitHub repo, extracting profile info"
        assert (request.priority, request.requested_by) == ("high", "fullsend")
        assert request.experiment == "exp_20240115_github_stars"
        assert request.extra == {}

    def test_it_has_three_inputs(self, template):
        request = read_request(template)
        assert [given.name for given in request.inputs] == ["repo", "limit", "include_email"]
        assert request.parameters["required"] == ["repo"]
        assert fill_defaults(request.parameters)({"repo": "a/b"}) == {
            "repo": "a/b",
            "limit": 100,
            "include_email": True,
        }

    def test_it_has_three_outputs_and_six_of_eight_fields_may_be_null(self, template):
        request = read_request(template)
        assert [(given.name, given.is_list) for given in request.outputs] == [
            ("users", True),
            ("total_found", False),
            ("rate_limited", False),
        ]
        fields = request.output_schema["properties"]["users"]["items"]["properties"]
        assert len(fields) == 8
        assert [name for name, schema in fields.items() if schema == {"type": ["string", "null"]}] == [
            *("email", "name", "company", "bio", "location", "twitter"),
        ]

    def test_it_has_five_requirements_word_by_word(self, template):
        request = read_request(template)
        assert len(request.requirements) == 5
        assert request.requirements[0] == "Must handle GitHub API rate limiting (5000 req/hr with token)"
        assert request.asks_for_partial_results

    @pytest.mark.spec("S0-26")
    def test_its_example_imports_and_calls_the_function(self, template):
        request = read_request(template)
        assert request.function == "scrape_stargazers"
        assert request.shown == {"repo": "anthropics/claude", "limit": 100}
        assert compile_schema(request.parameters).is_valid(dict(request.shown))

    def test_it_comes_over_a_channel_as_a_shell_publishes_it(self, template):
        stripped = template.rstrip("\n")
        message = read_message(stripped)
        assert (message.id, message.text) == ("req_20240115_001", stripped)
        assert read_request(stripped).digest == read_request(template).digest

    def test_another_number_changes_that_line_alone(self, template):
        changed = with_id(template, "req_20240115_002")
        assert changed == template.replace("id: req_20240115_001", "id: req_20240115_002")

    @pytest.mark.spec("S0-23", "S0-42")
    def test_an_answer_has_to_be_what_it_declares(self, template):
        validator = compile_schema(read_request(template).output_schema)
        fields = ("email", "name", "company", "bio", "location", "twitter")
        user = {"username": "a", "followers": 1, **dict.fromkeys(fields)}
        answer = {"users": [user], "total_found": 1, "rate_limited": False}
        assert validator.is_valid(answer)
        assert not validator.is_valid({**answer, "users": [{**user, "username": None}]})
        assert not validator.is_valid({**answer, "users": [{**user, "email": 5}]})
        assert not validator.is_valid({"users": [user], "total_found": 1})


@pytest.mark.parametrize(
    ("name", "function", "shown"),
    [
        ("email_validator", "email_validator", {}),
        ("company_data_enricher", "enrich", {"domain": "example.com", "fields": ["size", "industry"]}),
        ("text_case_changer", "change_case", {"text": "Hello", "case": "lower"}),
    ],
)
def test_a_valid_request_loads_without_a_warning(text_of, name, function, shown):
    request = read_request(text_of(name), strict=True)
    assert (request.name, request.function, dict(request.shown)) == (name, function, shown)


@pytest.mark.spec("S0-22")
def test_a_nested_field_may_be_called_type(text_of):
    schema = read_request(text_of("company_data_enricher")).output_schema
    company = schema["properties"]["company"]["properties"]
    assert company["industries"] == {"type": "array", "items": {"type": "string"}}
    assert company["last_funding_round"]["properties"]["type"] == {"type": "string"}
    investors = company["last_funding_round"]["properties"]["investors"]
    assert investors["items"]["properties"] == {"name": {"type": "string"}, "type": {"type": ["string", "null"]}}
    assert company["headquarters"]["required"] == ["city", "country"]


TYPES = "write one of string, integer, boolean, list, object"
INPUT_KEYS = "is read, but the format has only name, type, description, required, default"
STRANGER = "is kept and not read; remove it, or say it in the description"


@pytest.mark.spec("S0-03", "S0-09", "S0-10", "S0-13", "S0-16", "S0-22")
def test_a_request_in_the_words_of_python_loads_with_a_warning_for_each(text_of):
    request = read_request(text_of("irregular_email_sender"), place="r")
    assert request.warnings == (
        "r:3: id: 'req_20260201_email_sender' is taken as it is; write req_YYYYMMDD_NNN",
        'r:6: priority: "HIGH" is understood as high; write high',
        'r:7: requested_by: "FULLSEND" is kept; the format always has fullsend',
        "r:8: experiment_id: is understood as experiment_blocked; write that",
        f"r:9: created_at: {STRANGER}",
        f"r:10: category: {STRANGER}",
        f"r:11: estimated_effort: {STRANGER}",
        f'r:14: inputs[0].type: the type "list[dict]" is understood as list of object; {TYPES}',
        f"r:17: inputs[0].schema: {INPUT_KEYS}",
        f'r:18: inputs[0].schema.email: the type "str" is understood as string; {TYPES}',
        'r:19: inputs[0].schema.name: is optional, which is understood as null; write "string | null"',
        f'r:21: inputs[1].type: the type "str" is understood as string; {TYPES}',
        f"r:24: inputs[1].example: {INPUT_KEYS}",
        f'r:26: inputs[2].type: the type "int" is understood as integer; {TYPES}',
        f"r:28: inputs[2].optional: {INPUT_KEYS}",
        f'r:31: inputs[3].type: the type "number" is understood as a number; {TYPES}',
        f'r:36: outputs[0].type: the type "list[string]" is understood as list of string; {TYPES}',
        "r:37: outputs[1]: says nothing about what is in it, so anything may be; write schema: and its fields",
        f'r:40: outputs[2].type: the type "datetime" is understood as string; {TYPES}',
        f"r:41: success_criteria: {STRANGER}",
        f"r:43: notes: {STRANGER}",
    )
    assert (request.id, request.priority, request.experiment) == (
        "req_20260201_email_sender",
        "high",
        "exp_20260201_outreach",
    )
    assert list(request.extra) == ["created_at", "category", "estimated_effort", "success_criteria", "notes"]
    assert request.inputs[1].samples == ("Hello {name}",)
    assert request.parameters["required"] == ["recipients", "subject"]


@pytest.mark.spec("S0-13", "S0-19")
def test_a_request_with_a_dozen_keys_of_its_own_loads_with_warnings(text_of):
    request = read_request(text_of("irregular_lead_finder"))
    strangers = ["status", "source", "channel", "message", "retries", "urgent", "version", "tags"]
    assert list(request.extra) == strangers
    assert len(request.warnings) == 24
    lead = request.output_schema["properties"]["leads"]["items"]["properties"]
    assert lead == {
        "name": {"type": "string"},
        "score": {"type": "number"},
        "seen_at": {"type": "string"},
        "email": {"type": ["string", "null"]},
        "posts": {"type": "array", "items": {"type": "string"}},
    }
    assert request.parameters["properties"]["since"]["type"] == "string"
    assert request.parameters["required"] == ["keywords"]
    # A default that its own type refuses is not filled in.
    assert fill_defaults(request.parameters) is None


@pytest.mark.spec("S0-10", "S0-17", "S0-25")
def test_an_irregular_request_that_cannot_be_read_is_one_refusal_with_every_defect(text_of):
    with pytest.raises(ToolError) as caught:
        read_request(text_of("irregular_site_watcher"), place="r")
    assert caught.value.kind is Kind.VALIDATION
    assert caught.value.details["problems"] == [
        "r:2: requested_by: is missing; write requested_by: fullsend",
        "r:13: inputs[1].description: is missing; write description: what it is for",
    ]


@pytest.mark.parametrize("name", ["irregular_email_sender", "irregular_lead_finder", "irregular_site_watcher"])
def test_strict_reading_refuses_what_is_irregular(text_of, name):
    with pytest.raises(ToolError) as caught:
        read_request(text_of(name), strict=True)
    assert len(caught.value.details["problems"]) > 3
