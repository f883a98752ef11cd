"""Files: a jail around the workspace, and durable writing for the crib's own data."""

from toolcrib.ground.files.jail import Jail

__all__ = ["Jail"]
