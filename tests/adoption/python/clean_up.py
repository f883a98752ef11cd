import atexit
import logging
import os
import sys
import tempfile

logging.basicConfig(level=logging.DEBUG)
log = logging.getLogger(__name__)
atexit.register(lambda: print("bye"))


def clean_up(names: list[str], dry_run: bool = True) -> int:
    """Count what would be removed.

    Args:
        names: The names.
        dry_run: Only count.
    """
    log.info("looking at %s", names)
    print("working", flush=True)
    sys.stderr.write("note: slow\n")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            with open(os.path.join(folder, name), "w") as file:
                file.write("x")
        found = len(os.listdir(folder))
    if not dry_run:
        sys.exit("refusing to remove")
    if found > 2:
        sys.exit(3)
    if found == 2:
        sys.exit()
    return found
