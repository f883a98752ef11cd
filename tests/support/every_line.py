"""Do something at each line of a piece of work, one line after the other, as garbage collection and other threads may."""

import sys
import threading
from itertools import count

SECONDS = 20


def at_every_line(functions, prepare):
    """Run the work once for each line of these functions that it executes.

    `prepare` returns the work, what to do at that line, and a check for afterwards. Each run has a thread of its own, so that a
    deadlock fails the test instead of stopping it.
    """
    for number in count():
        work, act, check = prepare()
        lines = _Lines({function.__code__ for function in functions}, number, act)
        failures = []

        def run(work=work, lines=lines, check=check, failures=failures):
            try:
                lines.follow(work)
                if lines.place is not None:
                    check()
            except BaseException as problem:
                failures.append(problem)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(SECONDS)
        assert not thread.is_alive(), f"a deadlock, after line {lines.place}"
        if failures:
            raise AssertionError(f"after line {lines.place}") from failures[0]
        if lines.place is None:
            assert number > 0, "the work runs none of these functions"
            return


class _Lines:
    """Counts the lines of some functions, and acts at one of them."""

    def __init__(self, codes, number, act):
        self._codes, self._left, self._act = codes, number, act
        self.place = None

    def follow(self, work):
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            work()
        finally:
            sys.settrace(before)

    def _enter(self, frame, _event, _argument):
        return self._step if frame.f_code in self._codes and self.place is None else None

    def _step(self, frame, event, _argument):
        if event == "line" and self.place is None:
            if self._left == 0:
                self.place = frame.f_lineno
                sys.settrace(None)
                self._act()
            self._left -= 1
        return self._step
