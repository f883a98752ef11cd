"""Pause the garbage collector of the process."""

from __future__ import annotations

import gc
import threading


class _CollectorPause:
    """Pauses the garbage collector while thousands of tools are created; thread-safe.

    All of these objects stay alive and contain no cycles, so that collections would find nothing and take a tenth of the
    time. The number of tools is limited, and so is the pause.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._was_enabled = False
        self._changing = threading.Lock()

    def __enter__(self) -> None:
        with self._changing:
            if self._inside == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._changing:
            self._inside -= 1
            if self._inside == 0 and self._was_enabled:
                gc.enable()


# One for the whole process, like the collector.
COLLECTOR_PAUSE = _CollectorPause()
