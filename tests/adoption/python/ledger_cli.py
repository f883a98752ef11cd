#!/usr/bin/env python3
"""Keep a ledger.

Usage: ledger_cli.py COMMAND ...
"""
import argparse


def cmd_add(args):
    print(f"added {args.amount} to {args.account}" + (f" ({args.note})" if args.note else ""))


def cmd_show(args):
    print(f"{args.account}: 0" + (" all" if args.all else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    sub = parser.add_subparsers(dest="command", required=True)
    for name, func in (("show", cmd_show),):
        p = sub.add_parser(name, help="show an account")
        p.add_argument("account")
        p.add_argument("-a", "--all", action="store_true")
        p.set_defaults(func=func)
    p_add = sub.add_parser("add", help="add to an account", aliases=["a"])
    p_add.add_argument("account")
    p_add.add_argument("amount", type=int)
    p_add.add_argument("--note")
    p_add.set_defaults(func=cmd_add)
    args = parser.parse_args()
    args.func(args)


if __name__ == "__main__":
    main()
