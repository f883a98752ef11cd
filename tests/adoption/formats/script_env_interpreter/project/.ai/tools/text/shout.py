__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "venv_python"
__category__ = "text"
__tool_description__ = "Shout"
CONFIG_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

import json
import sys

print(json.loads(sys.argv[2])["text"].upper() + "!")
