__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "utility"
__tool_description__ = "ROT13"

import codecs


def main(text: str) -> str:
    return codecs.encode(text, "rot13")
