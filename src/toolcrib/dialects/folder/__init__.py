"""Tool folders of four files: `schema.json`, `doc_summary.md`, `doc.md` and `handler.js` or `handler.py`.

A folder directly under the root is a tool of this dialect if it holds any of these files and its name begins with
neither `_` nor `.`; a folder without any of them belongs to another dialect. Nothing runs when a folder is read.
"""

from __future__ import annotations

from toolcrib.dialects.folder.documents import Absent, DocExample, FailureMode, doc_examples, failure_modes
from toolcrib.dialects.folder.files import (
    Survey,
    collect_files,
    shared_files,
    survey_folder,
    survey_shared,
    tool_folders,
)
from toolcrib.dialects.folder.reading import Reading, read_tool

__all__ = [
    "Absent",
    "DocExample",
    "FailureMode",
    "Reading",
    "Survey",
    "collect_files",
    "doc_examples",
    "failure_modes",
    "read_tool",
    "shared_files",
    "survey_folder",
    "survey_shared",
    "tool_folders",
]
