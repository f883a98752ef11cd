"""Files with metadata, in any language: what `.ai/tools` holds. Nothing of them runs when they are read.

What is meant to be a tool: a YAML, TOML or JSON file that says `tool_id`, `tool_type` or `executor_id`; a JavaScript or
Bash file whose first comments say so, or that has a `__tool_description__`; a Python file with any variable of ours but
`__version__`. Every other file is a helper or data, and no tool. A file in a language that nobody here reads is reported
if it looks like a tool and is left alone otherwise; a plug-in that adds a dialect for its extension comes first.
"""

from __future__ import annotations

from toolcrib.dialects.script.dialect import ScriptFile

__all__ = ["ScriptFile"]
