import json
import logging
import os
import sys

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("warehouse")

SITE = os.environ.get("WAREHOUSE_SITE", "main")
STOCK = {"main": {"lamp": 4, "chair": 0}, "north": {"lamp": 1}}


def main(item: str, min_pieces: int = 1) -> str:
    """Tell as JSON text whether an item is in stock at this site."""
    log.info("looking for %s at %s", item, SITE)
    pieces = STOCK[SITE].get(item)
    if pieces is None:
        log.error("no such item")
        raise KeyError(item)
    return json.dumps({"item": item, "site": SITE, "available": pieces >= min_pieces})


if __name__ == "__main__":
    print(main(sys.argv[1]))
