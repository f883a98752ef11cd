"""Answers of a server as the nouns that they tell of; every one has been held against its shape before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.model.bundle import Bundle, Owner
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Intent, Result
from toolcrib.model.toolrequest import Allowance, Event, Experiment, Filed, Priority, RecordedAnswer, Status
from toolcrib.model.verdict import Decision, Verdict
from toolcrib.pipeline.explanation import Explanation, Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

    Document = Mapping[str, Any]

PARTIAL = "partialValue"
# A server says how many answers were recorded, and not what they are.
UNSEEN = RecordedAnswer(url="")


def read_success(document: Document) -> Result:
    """What a call came to that did what was asked."""
    return Result(value=document["value"], intents=_intents(document), meta=document["meta"])


def read_failure(document: Document, *, refused: bool) -> Result:
    """What a call came to that did not; what it had achieved stands in its details."""
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


def read_explanation(document: Document) -> Explanation:
    """What every gate says."""
    return Explanation(tool=document["tool"], findings=tuple(_finding(found) for found in document["findings"]))


def read_bundle(document: Document) -> Bundle:
    """A bundle; a time that never was is empty."""
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
    """A request as its queue keeps it."""
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
        wishes=int(document["wishes"]),
        allowance=_allowance(document["allowance"]),
    )


def read_event(document: Document) -> Event:
    """Something that happened to a request."""
    return Event(number=int(document["number"]), at=document["at"], step=document["step"], text=document["text"])


def read_experiment(document: Document) -> Experiment:
    """Something that waits for tools."""
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
