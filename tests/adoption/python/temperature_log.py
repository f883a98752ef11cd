"""Log a temperature. Prints the line that would be logged."""
import argparse
from datetime import date
from pathlib import Path


def build_parser():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("degrees", type=float, help="may be below zero")
    p.add_argument("--note", default="", help="free text")
    p.add_argument("--offset", type=int, default=0)
    p.add_argument("--day", type=date.fromisoformat, required=True, help="YYYY-MM-DD")
    p.add_argument("--sensor", type=int, choices=range(1, 4), default=1)
    p.add_argument("--out", type=Path, default=Path("log.txt"))
    return p


def main(argv=None):
    args = build_parser().parse_args(argv)
    line = f"{args.day:%d.%m.%Y} #{args.sensor} {args.degrees + args.offset:.1f}"
    if args.note:
        line += f" ({args.note})"
    print(f"{args.out.name}: {line}")


if __name__ == "__main__":
    main()
