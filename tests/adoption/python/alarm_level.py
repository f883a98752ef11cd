import enum
import sys
from typing import NewType, TypeAlias, Union

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:
    class StrEnum(str, enum.Enum):
        pass

SensorId = NewType("SensorId", str)
Reading: TypeAlias = Union[int, float]


class Level(StrEnum):
    LOW = enum.auto()
    HIGH = enum.auto()


class Colour(enum.Enum):
    GREEN = 1
    RED = 2
    CRIMSON = 2


class Access(enum.Flag):
    READ = 1
    WRITE = 2


def alarm_level(sensor: SensorId, reading: Reading, floor: Level = Level.LOW, colour: Colour | None = None) -> dict:
    """Tell whether a sensor is too high.

    Args:
        sensor: Which one.
        reading: What it measured.
        floor: The least level.
        colour: The colour to show.
    """
    level = Level.HIGH if reading > 10 else floor
    return {"sensor": sensor, "level": level, "colour": colour and colour.name, "is_level": isinstance(floor, Level)}


def next_level(now: Level) -> Level:
    """The level after this one.

    Args:
        now: The level at present.
    """
    return Level.HIGH


__tools__ = ["alarm_level", "next_level"]
