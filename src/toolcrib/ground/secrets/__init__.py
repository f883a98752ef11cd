"""Everything that nobody may see: keys that sign, and secrets that tools send."""

from toolcrib.ground.secrets.hiding import HideSecrets, Masking
from toolcrib.ground.secrets.keys import KEY_BYTES, load_key, new_key
from toolcrib.ground.secrets.secret import MASK, Secret
from toolcrib.ground.secrets.secrets import Secrets

__all__ = ["KEY_BYTES", "MASK", "HideSecrets", "Masking", "Secret", "Secrets", "load_key", "new_key"]
