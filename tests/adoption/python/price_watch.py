import argparse
import json
import os
import sys
from enum import Enum
from pathlib import Path


class Shop(Enum):
    NORTH = "north"
    SOUTH = "south"


def build_parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-v", "--verbose", action="count", default=0)
    parser = argparse.ArgumentParser(prog="price-watch", description="Watch prices.", parents=[common],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("items", nargs="*", help="what to watch")
    group = parser.add_argument_group("limits")
    group.add_argument("--max-price", type=float, default=9.5, metavar="EUR", help="the most to pay (%(default)s)")
    group.add_argument("--shop", choices=[shop.value for shop in Shop], default="north")
    parser.add_argument("--cache", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--token", default=os.environ.get("PRICE_TOKEN", "none"))
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--json", dest="as_json", action="store_true")
    either.add_argument("--csv", dest="as_json", action="store_false")
    parser.set_defaults(as_json=False)
    return parser


def main(argv=None) -> int:
    args = build_parser().parse_args(argv)
    if not args.items:
        print("nothing to watch", file=sys.stderr)
        return 2
    if args.as_json:
        print(json.dumps({"items": args.items, "max": args.max_price, "shop": args.shop, "cache": args.cache, "verbose": args.verbose}))
    else:
        print(";".join(args.items), args.max_price, args.shop, args.cache)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
