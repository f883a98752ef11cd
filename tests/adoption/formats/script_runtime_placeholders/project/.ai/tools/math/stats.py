__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_json_runtime"
__category__ = "math"
__tool_description__ = "Mean and spread of numbers"

import argparse
import json
import statistics
import sys

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "numbers": {"type": "array", "items": {"type": "number"}, "minItems": 1},
        "spread": {"type": "boolean", "default": False},
    },
    "required": ["numbers"],
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--params", required=True)
    parser.add_argument("--project-path", required=True)
    args = parser.parse_args()
    params = json.loads(args.params)
    numbers = params["numbers"]
    if sum(numbers) < 0:
        print("negative total", file=sys.stderr)
        sys.exit(2)
    out = {"mean": statistics.mean(numbers)}
    if params.get("spread"):
        out["spread"] = max(numbers) - min(numbers)
    print(json.dumps(out))
