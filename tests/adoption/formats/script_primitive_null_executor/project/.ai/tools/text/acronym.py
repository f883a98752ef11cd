__tool_id__ = "acronym"
__version__ = "1.0.0"
__tool_type__ = "script"
__executor_id__ = "py"
__category__ = "text"
__tool_description__ = "Make an acronym"
__input_schema__ = {"type": "object", "properties": {"phrase": {"type": "string"}}, "required": ["phrase"]}

import json
import sys

params = json.loads(sys.argv[1])
print("".join(word[0] for word in params["phrase"].split()).upper())
