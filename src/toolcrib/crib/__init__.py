"""The one object that users hold, and the only place that chooses and connects parts."""

from toolcrib.crib.crib import Crib
from toolcrib.crib.data import DATA_FOLDER
from toolcrib.crib.parts import PROJECT_SCRIPTS, USER_SCRIPTS

__all__ = ["DATA_FOLDER", "PROJECT_SCRIPTS", "USER_SCRIPTS", "Crib"]
