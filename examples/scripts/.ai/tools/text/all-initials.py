__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "text"
__tool_description__ = "Give the initials of several names, by calling another tool for each"
__requires__ = ["rye.execute"]

import rye


def main(names: list[str]) -> dict[str, str]:
    """Give the initials of several names.

    Args:
        names: The full names.
    """
    return {name: rye.execute("initials", name=name) for name in names}
