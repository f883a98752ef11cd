"""sum columns of numbers"""
import argparse
import sys


def parse():
    p = argparse.ArgumentParser(prog="sum_columns")
    p.add_argument("numbers", nargs="+", type=float, metavar="N", help="numbers to add")
    p.add_argument("--scale", nargs=2, type=float, metavar=("FROM", "TO"), help="rescale the result")
    p.add_argument("--label", nargs="?", const="total", default=None, help="put a label in front")
    p.add_argument("--quiet", dest="verbose", action="store_false", help="print the number alone")
    p.add_argument("--version", action="version", version="%(prog)s 1.2")
    return p.parse_args()


def run():
    args = parse()
    total = sum(args.numbers)
    if args.scale:
        low, high = args.scale
        if low == 0:
            sys.exit("cannot scale from 0")
        total = total / low * high
    text = f"{total:g}"
    if args.label:
        text = f"{args.label}: {text}"
    if args.verbose:
        text += f" (of {len(args.numbers)} numbers)"
    print(text)


if __name__ == "__main__":
    run()
