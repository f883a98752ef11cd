"""Import built tools as Python functions: `from tools.email_validator import validate_email`."""

from __future__ import annotations

from toolcrib.crib import Crib
from toolcrib.features.requests.built_functions import POOL, Answer, Record, open_package

__all__ = ["Answer", "Record", "open_package"]

POOL.open_crib = Crib
