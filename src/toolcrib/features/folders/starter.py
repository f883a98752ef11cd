"""The files of a new tool folder and its test, which pass the build as they are."""

from __future__ import annotations

import re

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MAX_NAME

# What package managers and interpreters fill, and what Windows takes for devices.
RESERVED = frozenset(
    (
        *("node-modules", "venv", "con", "prn", "aux", "nul"),
        *(f"{device}{number}" for device in ("com", "lpt") for number in range(1, 10)),
    )
)
LANGUAGES = ("javascript", "python")

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")

_SCHEMA = """\
{
  "toolId": "@tool@",
  "version": "1.0.0",
  "description": "Count the words of a text.",
  "category": "utility",
  "sideEffects": "none",
  "idempotent": true,
  "requiresConfirmation": false,
  "allowedModes": ["text", "voice"],
  "latencyBudgetMs": 500,
  "parameters": {
    "type": "object",
    "additionalProperties": false,
    "required": ["text"],
    "properties": {
      "text": {
        "type": "string",
        "description": "The text whose words are counted",
        "minLength": 1,
        "maxLength": 2000
      }
    }
  }
}
"""

_SUMMARY = """\
Count the words of a text. Use it when the exact number matters; do not estimate.
"""

_DOCUMENTATION = """\
# @title@

## Summary
Counts the words of a text.

## Preconditions
- The text is known; nothing is looked up.

## Postconditions
- The number of words is returned as `words`.
- Nothing is changed anywhere.

## Invariants
- The same text always has the same number of words.
- A word is what stands between spaces, tabs or ends of lines.

## Failure Modes
- **VALIDATION**: The text is empty or holds only spaces. Not retryable, no side effects.

## Examples

### Example 1: A sentence
Context: The user asks how long a sentence is.
Action:
```json
{
  "text": "Every tool has its place"
}
```
Result:
```json
{
  "words": 5
}
```

### Example 2: Nothing but spaces
Context: The user sent an empty line.
Action:
```json
{
  "text": "   "
}
```
Result: VALIDATION, and the user is asked for the text.

## Common Mistakes (Do Not)
❌ Send a summary of the text - its words are not those of the text
✅ Send the text as it is
"""

_JAVASCRIPT = """\
import { ErrorType } from '../_core/error-types.js';

/**
 * Count the words of a text
 */
export async function execute({ args }) {
  const words = args.text.split(/\\s+/).filter((word) => word !== '');

  if (words.length === 0) {
    return {
      ok: false,
      error: {
        type: ErrorType.VALIDATION,
        message: 'text holds no words; send the text that is meant',
        retryable: false,
      },
    };
  }

  return { ok: true, data: { words: words.length } };
}
"""

_PYTHON = '''\
"""Count the words of a text."""


async def execute(args, context):
    """Answer with the number of words."""
    words = args["text"].split()

    if not words:
        return {
            "ok": False,
            "error": {
                "type": "VALIDATION",
                "message": "text holds no words; send the text that is meant",
                "retryable": False,
            },
        }

    return {"ok": True, "data": {"words": len(words)}}
'''

_TEST = '''\
"""What the tool @tool@ promises."""

from pathlib import Path

import pytest

from toolcrib import Crib
from toolcrib.build import build
from toolcrib.testing import check_sync

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def crib():
    """A crib over this project, with its tools built as they are now."""
    built = build(PROJECT / "tools", project=PROJECT)
    assert built.problems == ()
    with Crib(PROJECT) as crib:
        yield crib


def test_the_examples_of_its_documentation_hold(crib):
    check_sync(crib, "@tool@")


def test_words_are_counted(crib):
    result = crib.call_sync("@tool@", text="Every tool has its place")
    assert result.ok, result.error
    assert result.value == {"words": 5}


def test_a_text_without_words_is_refused(crib):
    result = crib.call_sync("@tool@", text="   ")
    assert not result.ok
    assert result.error.kind == "VALIDATION"
    assert "no words" in result.error.message
'''


def starter_files(name: str, language: str = "javascript") -> dict[str, str]:
    """The files of a new tool that passes its build and its test as it is, by their paths from the project."""
    folder = _check_name(name).replace("_", "-")
    tool = folder.replace("-", "_")
    if language not in LANGUAGES:
        raise ToolError(Kind.VALIDATION, f"language {language[:80]!r}: use {' or '.join(LANGUAGES)}")
    handler, code = ("handler.js", _JAVASCRIPT) if language == "javascript" else ("handler.py", _PYTHON)
    texts = {
        f"tools/{folder}/schema.json": _SCHEMA,
        f"tools/{folder}/doc_summary.md": _SUMMARY,
        f"tools/{folder}/doc.md": _DOCUMENTATION,
        f"tools/{folder}/{handler}": code,
        f"tests/test_{tool}.py": _TEST,
    }
    words = {"@tool@": tool, "@title@": tool.replace("_", " ").capitalize()}
    return {path: _fill(text, words) for path, text in texts.items()}


def _check_name(name: str) -> str:
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        message = (
            f"name {name[:80]!r}: use 1 to {MAX_NAME} letters a-z, digits, '-' or '_', beginning with a letter, "
            "as in my-tool"
        )
        raise ToolError(Kind.VALIDATION, message)
    if name.replace("_", "-") in RESERVED:
        raise ToolError(Kind.VALIDATION, f"name {name!r}: is taken by other programs; choose another one")
    return name


def _fill(text: str, words: dict[str, str]) -> str:
    for mark, word in words.items():
        text = text.replace(mark, word)
    return text
