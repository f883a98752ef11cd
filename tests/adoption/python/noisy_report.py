import os
import sys


def noisy_report(rows: int) -> dict:
    """Build the report. Our old framework wants the protocol lines on stdout."""
    print('{"ok": true, "value": "not this"}')
    sys.stdout.write("no newline here")
    sys.stdout.flush()
    os.write(1, b'\n{"result": null}\n')
    if rows < 0:
        print("about to fail")
        raise ValueError("rows is negative")
    return {"ok": False, "rows": rows, "error": None if rows else "empty"}
