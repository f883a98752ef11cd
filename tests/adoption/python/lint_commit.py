#!/usr/bin/env python3
"""Check a commit message. Exits 1 and prints the complaints when it is bad."""
from optparse import OptionParser
import sys

parser = OptionParser(usage="%prog [options] MESSAGE")
parser.add_option("-w", "--width", type="int", default=50, help="longest first line [%default]")
parser.add_option("-t", "--ticket", dest="ticket", help="ticket that must be named")


def complaints(message, width=50, ticket=None):
    first = message.split("\n")[0]
    if len(first) > width:
        yield f"first line has {len(first)} characters"
    if first.endswith("."):
        yield "first line ends with a full stop"
    if ticket and ticket not in message:
        yield f"{ticket} is not named"


if __name__ == "__main__":
    options, args = parser.parse_args()
    if len(args) != 1:
        parser.error("give one MESSAGE")
    found = list(complaints(args[0], options.width, options.ticket))
    for line in found:
        print(line)
    if found:
        sys.exit(1)
    print("fine")
