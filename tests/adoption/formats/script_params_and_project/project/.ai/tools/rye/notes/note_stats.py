# rye:signed:2026-01-11T08:30:00Z:0f3c
"""Statistics about the notes of a project."""

__version__ = "1.2.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "rye/notes"
__tool_description__ = "Count words and characters of a note"

import argparse
import json
from pathlib import Path
from typing import Any, Dict

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "The note"},
        "unit": {"type": "string", "enum": ["words", "chars"], "default": "words"},
    },
    "required": ["text"],
}


def execute(params: Dict[str, Any], project_path: str) -> Dict[str, Any]:
    text = params["text"]
    unit = params.get("unit", "words")
    count = len(text.split()) if unit == "words" else len(text)
    return {"success": True, "count": count, "unit": unit, "has_project": bool(Path(project_path).name)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--params", required=True)
    parser.add_argument("--project-path", required=True)
    args = parser.parse_args()
    print(json.dumps(execute(json.loads(args.params), args.project_path)))
