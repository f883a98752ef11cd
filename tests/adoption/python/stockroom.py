#!/usr/bin/env python
"""Stockroom: look up and count parts.

    stockroom.py find NAME [--shelf N]
    stockroom.py count
    stockroom.py move PART --to SHELF [--dry-run]
"""
import argparse
import json
import sys

PARTS = [
    {"part": "bolt M6", "shelf": 1, "pieces": 400},
    {"part": "bolt M8", "shelf": 2, "pieces": 150},
    {"part": "nut M6", "shelf": 1, "pieces": 380},
]


def find(args):
    hits = [p for p in PARTS if args.name.lower() in p["part"].lower()]
    if args.shelf is not None:
        hits = [p for p in hits if p["shelf"] == args.shelf]
    print(json.dumps(hits))


def count(args):
    print(json.dumps({"parts": len(PARTS), "pieces": sum(p["pieces"] for p in PARTS)}))


def move(args):
    for p in PARTS:
        if p["part"] == args.part:
            break
    else:
        print(f"stockroom: no part called {args.part!r}", file=sys.stderr)
        return 3
    verb = "would move" if args.dry_run else "moved"
    print(json.dumps({"note": f"{verb} {args.part} from {p['shelf']} to {args.to}"}))


def main(argv=None):
    parser = argparse.ArgumentParser()
    sub = parser.add_subparsers(dest="command", required=True)
    f = sub.add_parser("find", help="find parts by name")
    f.add_argument("name")
    f.add_argument("--shelf", type=int)
    f.set_defaults(func=find)
    c = sub.add_parser("count", help="count everything")
    c.set_defaults(func=count)
    m = sub.add_parser("move", help="move a part")
    m.add_argument("part")
    m.add_argument("--to", type=int, required=True, help="new shelf")
    m.add_argument("--dry-run", action="store_true")
    m.set_defaults(func=move)
    args = parser.parse_args(argv)
    return args.func(args) or 0


if __name__ == "__main__":
    sys.exit(main())
