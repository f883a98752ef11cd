"""The rules of keeping tools: one per name, found by any spelling, switched on or off."""

from toolcrib.catalog.catalog import Catalog
from toolcrib.catalog.folder import Folder

__all__ = ["Catalog", "Folder"]
