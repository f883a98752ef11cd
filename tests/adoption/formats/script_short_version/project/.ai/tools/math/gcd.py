__version__ = "1.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "math"
__tool_description__ = "Greatest common divisor"

import math


def main(first: int, second: int) -> int:
    return math.gcd(first, second)
