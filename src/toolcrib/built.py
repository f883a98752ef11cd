"""What the packages in `tools/` offer to Python: `from tools.email_validator import validate_email`."""

from __future__ import annotations

from toolcrib.crib import Crib
from toolcrib.features.requests.built_functions import Answer, Record, open_package
from toolcrib.features.requests.crib_pool import ROOMS

__all__ = ["Answer", "Record", "open_package"]

ROOMS.open_crib = Crib
