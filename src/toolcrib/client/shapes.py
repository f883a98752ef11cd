"""Validate the answers of a server against schemas (shapes), and read them into the types of the model.

Every answer is validated before it is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from toolcrib.lib.schema import compile_schema
from toolcrib.lib.schema_problems import explain_problems
from toolcrib.model.approval import State
from toolcrib.model.bundle import Bundle, Owner
from toolcrib.model.call import LOG_LEVELS
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.events import Chunk, LogMessage, Progress
from toolcrib.model.result import Decision, Explanation, Finding, Intent, Result, Verdict
from toolcrib.model.tool import MODES, Backoff, Behaviour, SideEffects
from toolcrib.model.toolrequest import Allowance, Event, Experiment, Filed, Priority, RecordedAnswer, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.lib.schema import Validator
    from toolcrib.model.events import StreamEvent

    Schema = dict[str, object]
    Document = Mapping[str, Any]

MAX_PROBLEM = 300
# The most recorded answers that a request may have.
MAX_ANSWERS = 64
PARTIAL = "partialValue"
# Stands for a recorded answer, of which a server tells only the number.
UNSEEN = RecordedAnswer(url="")

ANYTHING: Schema = {}
OBJECT: Schema = {"type": "object"}
TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
TEXTS: Schema = {"type": "array", "items": TEXT}
SWITCH: Schema = {"type": "boolean"}
# Greater numbers cannot be printed without an exponent.
AMOUNT: Schema = {"type": "number", "minimum": 0, "maximum": 1e15}
WHOLE: Schema = {"type": "integer", "minimum": 0, "maximum": 2**53}
MAYBE_COUNT: Schema = {"type": ["integer", "null"], "minimum": 1, "maximum": 2**53}


@dataclass(frozen=True)
class Shape:
    """The schema of one kind of answer."""

    schema: Schema

    @cached_property
    def _validator(self) -> Validator:
        return compile_schema(self.schema)

    def check(self, document: object, url: str) -> None:
        """Raise ToolError for an answer that does not match the schema."""
        problems = explain_problems(self._validator, document, self.schema)
        if problems:
            message = f"{url} does not answer as this version of Toolcrib expects: {problems[0][:MAX_PROBLEM]}"
            raise ToolError(Kind.PERMANENT, f"{message}; let both be of the same version")


def _object(**properties: object) -> Schema:
    return {"type": "object", "required": list(properties), "properties": properties}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


UNBUILT = _object(name=TEXT, address=TEXT, bundle=TEXT, kind=TEXT, reason=TEXT, cure=TEXT, origin=TEXT, tags=TEXTS)
FACTS: Schema = {
    **_object(
        name=TEXT,
        address=TEXT,
        displayName=TEXT,
        description=TEXT,
        bundle=TEXT,
        version=TEXT,
        category=TEXT,
        tags=TEXTS,
        enabled=SWITCH,
        reason=TEXT,
        cure=TEXT,
        marks=TEXTS,
        models=_object(**{"as": TEXT, "modes": TEXTS, "reason": TEXT}),
        shadows=TEXTS,
        shadowedBy=MAYBE_TEXT,
        parameters=OBJECT,
        output={"type": ["object", "null"]},
        requires=TEXTS,
        missingGrants=TEXTS,
        behaviour={"enum": [*map(str, Behaviour), None]},
        sideEffects={"enum": [*map(str, SideEffects), None]},
        idempotent=SWITCH,
        deprecated=SWITCH,
        modes={**TEXTS, "type": ["array", "null"]},
        requiresConfirmation=SWITCH,
        limits=TEXT,
        tried=TEXT,
        ownLimits=_object(timeoutMs=MAYBE_COUNT, latencyBudgetMs=MAYBE_COUNT, callsPerMinute=MAYBE_COUNT),
        retry={
            **_object(
                max_attempts=WHOLE,
                backoff={"enum": [*map(str, Backoff)]},
                initial_delay=AMOUNT,
                max_delay=AMOUNT,
                multiplier=AMOUNT,
                jitter=SWITCH,
            ),
            "type": ["object", "null"],
            "additionalProperties": False,
        },
        cost={
            **_object(
                per_invocation=AMOUNT, per_minute=AMOUNT, estimated_duration=AMOUNT, estimate=AMOUNT, currency=TEXT
            ),
            "type": ["object", "null"],
        },
        kind=TEXT,
        sourceType=TEXT,
        summary=TEXT,
        documentation=TEXT,
        examples=_list(OBJECT),
        metadata=OBJECT,
        origin=TEXT,
        contentHash=TEXT,
        warnings=TEXTS,
    ),
    "dependentSchemas": {
        "handler": _object(handler=TEXT, language=TEXT, hosts={**TEXTS, "type": ["array", "null"]}, registry=TEXT),
        "statement": _object(database=TEXT, statement=TEXT, writes=SWITCH, hosts={**TEXTS, "type": ["array", "null"]}),
        "toolType": _object(
            toolType=TEXT,
            executor=MAYBE_TEXT,
            action=MAYBE_TEXT,
            hosts={**TEXTS, "type": ["array", "null"]},
            config=ANYTHING,
        ),
    },
}
ALL_FACTS: Schema = {"allOf": [FACTS, _object(failingExamples=_list(OBJECT), definition=OBJECT, bundleID=TEXT)]}
LISTED: Schema = {"if": {"required": ["built"]}, "then": UNBUILT, "else": FACTS, **_object(order=WHOLE)}
FOUND = _object(
    name=TEXT,
    address=TEXT,
    bundle=TEXT,
    version=TEXT,
    foundBy=TEXT,
    score={"type": "number"},
    enabled=SWITCH,
    description=TEXT,
)
LISTED_PAGE = Shape(_object(tools=_list(LISTED), nextPageToken=MAYBE_TEXT))
FOUND_PAGE = Shape(_object(tools=_list(FOUND), nextPageToken=MAYBE_TEXT))
SHOWN_PAGE = Shape(_object(tools={**_list(ALL_FACTS), "minItems": 1, "maxItems": 1}))
BUNDLE = _object(
    schemaVersion=TEXT,
    bundleID=TEXT,
    slug=TEXT,
    displayName=TEXT,
    description=TEXT,
    isEnabled=SWITCH,
    source={"enum": [str(owner) for owner in Owner]},
    createdAt=MAYBE_TEXT,
    modifiedAt=MAYBE_TEXT,
    toggledAt=MAYBE_TEXT,
    softDeletedAt=MAYBE_TEXT,
)
BUNDLE_ANSWER = Shape(BUNDLE)
BUNDLE_PAGE = Shape(_object(bundles=_list(BUNDLE), nextPageToken=MAYBE_TEXT))
AUDIT_EVENT = _object(number=WHOLE, time=TEXT, what=TEXT, about=TEXT, actor=TEXT, name=TEXT, why=TEXT)
AUDIT_PAGE = Shape(_object(events=_list(AUDIT_EVENT), nextPageToken=MAYBE_TEXT))
STORED = Shape(_object(toolID=TEXT))
NOTHING = Shape({"maxProperties": 0})
SWITCHED = Shape(_object(disabledReason=TEXT))
ERROR = _object(
    type={"enum": [str(kind) for kind in Kind]},
    message=TEXT,
    retryable=SWITCH,
    partialSideEffects=SWITCH,
    details=OBJECT,
)
BESIDE: Schema = _object(intents=_list(_object(type=TEXT)), meta=OBJECT)
SUCCESS = Shape({"allOf": [_object(ok={"const": True}, value=ANYTHING), BESIDE]})
FAILURE = Shape({"allOf": [_object(ok={"const": False}, error=ERROR), BESIDE]})
FINDING: Schema = {
    "type": "object",
    "required": ["gate", "decision"],
    "properties": {
        "gate": TEXT,
        "decision": {"enum": [*map(str, Decision), "not reached"]},
        "kind": {"enum": [str(kind) for kind in Kind]},
        "details": OBJECT,
        **dict.fromkeys(("reason", "rule", "where", "cure", "note"), TEXT),
    },
}
NUMBER: Schema = {"type": "number"}
STREAM_EVENTS = {
    "progress": Shape(_object(progress=NUMBER, total={"type": ["number", "null"]}, message=TEXT)),
    "log": Shape(_object(level={"enum": [*LOG_LEVELS]}, data=ANYTHING, logger=TEXT)),
    "chunk": Shape(_object(number=WHOLE, value=ANYTHING)),
}
SESSION = Shape(
    _object(id=TEXT, mode={"enum": sorted(MODES)}, calls=WHOLE, maxCalls={**WHOLE, "type": ["integer", "null"]})
)
EXPLANATION = Shape(_object(tool=TEXT, findings=_list(FINDING)))
PIECE = Shape(_object(text=TEXT, offset=WHOLE, total=WHOLE, next={**WHOLE, "type": ["integer", "null"]}))
HEALTH = Shape(_object(problems=TEXTS))
STATUS: Schema = {"enum": [str(status) for status in Status]}
FILED = _object(
    id=TEXT,
    name=TEXT,
    status=STATUS,
    priority={"enum": [str(priority) for priority in Priority]},
    experiment=MAYBE_TEXT,
    tool=MAYBE_TEXT,
    error=MAYBE_TEXT,
    mergedInto=MAYBE_TEXT,
    owner=MAYBE_TEXT,
    held=SWITCH,
    attempts=WHOLE,
    requesters=WHOLE,
    allowance=_object(capabilities=TEXTS, hosts=TEXTS, answers={**WHOLE, "maximum": MAX_ANSWERS}, unproved=SWITCH),
    createdAt=TEXT,
    updatedAt=TEXT,
    yaml=TEXT,
)
EVENT = _object(number={**WHOLE, "minimum": 1}, at=TEXT, step=TEXT, text=TEXT)
EXPERIMENT = _object(
    id=TEXT, status={"enum": ["ready", "blocked"]}, waitsFor=TEXTS, requests=TEXTS, releasedAt=MAYBE_TEXT
)
FILED_ANSWER = Shape(FILED)
SUBMITTED = Shape({"allOf": [FILED, _object(warnings=TEXTS, merged=SWITCH)]})
FILED_LIST = Shape(_object(requests=_list(FILED)))
HISTORY = Shape(_object(status=STATUS, history=_list(EVENT)))
EXPERIMENTS = Shape(_object(experiments=_list(EXPERIMENT)))
TIME: Schema = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"}
APPROVAL = _object(
    id=TEXT,
    state={"enum": [str(state) for state in State]},
    tool=TEXT,
    version=TEXT,
    contentHash=TEXT,
    arguments=OBJECT,
    digest=TEXT,
    caller=TEXT,
    reason=TEXT,
    rule=TEXT,
    createdAt=TIME,
    expiresAt=TIME,
    decidedBy=MAYBE_TEXT,
    decidedAt={**TIME, "type": ["string", "null"]},
    note=TEXT,
)
RUN_PART = _object(
    kind=TEXT,
    title=TEXT,
    facts=_list(_object(name=TEXT, value=TEXT)),
    text=MAYBE_TEXT,
    bytes={"type": ["integer", "null"]},
    shownBytes={"type": "integer"},
    sha256=MAYBE_TEXT,
    exact={"type": "boolean"},
    note=TEXT,
)
ABOUT = {
    "properties": {
        "title": TEXT,
        "description": TEXT,
        "sideEffects": TEXT,
        "asker": TEXT,
        "arguments": {"additionalProperties": TEXT},
    }
}
APPROVAL_ANSWER = Shape({"allOf": [APPROVAL, {"properties": {"runs": _list(RUN_PART), "about": ABOUT}}]})
APPROVAL_LIST = Shape(_object(approvals=_list(APPROVAL)))


def read_success(document: Document) -> Result:
    """The result of a call that succeeded."""
    return Result(value=document["value"], intents=_intents(document), meta=document["meta"])


def read_failure(document: Document, *, refused: bool) -> Result:
    """The result of a call that failed; a partial value is in its details."""
    error = document["error"]
    details = dict(error["details"])
    value = details.pop(PARTIAL, None)
    return Result(
        value=value,
        error=ToolError(
            Kind(error["type"]),
            error["message"],
            retryable=error["retryable"],
            partial_side_effects=error["partialSideEffects"],
            details=details,
        ),
        intents=_intents(document),
        meta=document["meta"],
        refused=refused,
    )


def read_stream_event(name: str, document: Document) -> StreamEvent:
    """An event of a streamed call."""
    if name == "progress":
        return Progress(progress=document["progress"], total=document["total"], message=document["message"])
    if name == "log":
        return LogMessage(level=document["level"], data=document["data"], logger=document["logger"])
    return Chunk(number=document["number"], value=document["value"])


def read_explanation(document: Document) -> Explanation:
    """The findings of all gates."""
    return Explanation(tool=document["tool"], findings=tuple(_finding(found) for found in document["findings"]))


def read_bundle(document: Document) -> Bundle:
    """A bundle; a time of something that never happened is empty."""
    return Bundle(
        id=document["bundleID"],
        slug=document["slug"],
        display_name=document["displayName"],
        description=document["description"],
        enabled=document["isEnabled"],
        owner=Owner(document["source"]),
        schema_version=document["schemaVersion"],
        created_at=document["createdAt"] or "",
        modified_at=document["modifiedAt"] or "",
        toggled_at=document["toggledAt"] or "",
        soft_deleted_at=document["softDeletedAt"] or "",
    )


def read_filed(document: Document) -> Filed:
    """A request as its queue stores it."""
    return Filed(
        id=document["id"],
        name=document["name"],
        status=Status(document["status"]),
        priority=Priority(document["priority"]),
        text=document["yaml"],
        created_at=document["createdAt"],
        updated_at=document["updatedAt"],
        experiment=document["experiment"] or "",
        error=document["error"] or "",
        tool=document["tool"] or "",
        merged_into=document["mergedInto"] or "",
        owner=document["owner"] or "",
        held=document["held"],
        attempts=int(document["attempts"]),
        requesters=int(document["requesters"]),
        allowance=_allowance(document["allowance"]),
    )


def read_event(document: Document) -> Event:
    """An event of a request."""
    return Event(number=int(document["number"]), at=document["at"], step=document["step"], text=document["text"])


def read_experiment(document: Document) -> Experiment:
    """An experiment that waits for tools."""
    return Experiment(
        id=document["id"],
        ready=document["status"] == "ready",
        waits_for=tuple(document["waitsFor"]),
        requests=tuple(document["requests"]),
        released_at=document["releasedAt"] or "",
    )


def _allowance(document: Document) -> Allowance:
    return Allowance(
        capabilities=frozenset(document["capabilities"]),
        hosts=tuple(document["hosts"]),
        answers=(UNSEEN,) * int(document["answers"]),
        unproved=document["unproved"],
    )


def _intents(document: Document) -> tuple[Intent, ...]:
    return tuple(
        Intent(type=intent["type"], fields={name: value for name, value in intent.items() if name != "type"})
        for intent in document["intents"]
    )


def _finding(found: Document) -> Finding:
    if found["decision"] not in set(Decision):
        return Finding(gate=found["gate"], verdict=None)
    return Finding(
        gate=found["gate"],
        note=found.get("note", ""),
        verdict=Verdict(
            decision=Decision(found["decision"]),
            reason=found.get("reason", ""),
            rule=found.get("rule", ""),
            where=found.get("where", ""),
            cure=found.get("cure", ""),
            kind=Kind(found.get("kind", Kind.BLOCKED)),
            details=found.get("details", {}),
        ),
    )
