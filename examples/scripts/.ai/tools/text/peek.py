__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "text"
__tool_description__ = "Try to read a file without having declared that"


def main(path: str) -> str:
    """Try to read a file.

    Args:
        path: The file.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as problem:
        return f"{problem.strerror}: {path}"
