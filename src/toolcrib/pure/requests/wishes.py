"""When two documents are the same, and when they ask for the same."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.model.toolrequest import ToolRequest


def same_text(one: str, other: str) -> bool:
    """Whether two documents are the same but for line breaks at their end, which a shell strips."""
    return one.rstrip("\r\n") == other.rstrip("\r\n")


def wish_digest(request: ToolRequest) -> str:
    """The same for two requests that ask for the same thing, whoever asks for it and however urgently."""
    wish = {
        "name": request.name,
        "description": request.description.strip(),
        "inputs": {given.name: (given.schema, given.required, given.samples) for given in request.inputs},
        "outputs": None if request.outputs is None else {given.name: given.schema for given in request.outputs},
        "requirements": request.requirements,
        "example": request.example_usage.strip(),
        "capabilities": sorted(request.capabilities),
        "hosts": request.hosts,
        "examples": [asdict(example) for example in request.examples],
        "answers": [asdict(answer) for answer in request.answers],
        "extra": dict(request.extra),
    }
    text = json.dumps(wish, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
