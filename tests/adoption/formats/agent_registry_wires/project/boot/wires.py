"""boot/wires.py - everything is put together here."""

from tool.index import ToolRegistry

from mytools.slots import FreeSlots

registry = ToolRegistry()
registry.register(FreeSlots(opening=9, closing=12))
