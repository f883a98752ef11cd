#!/usr/bin/env python3
# reads {"numbers": [...], "country": "49"} on stdin, writes {"numbers": [...], "rejected": [...]} to stdout
import json
import sys

request = json.load(sys.stdin)
country = request.get("country", "49")
good, bad = [], []
for number in request["numbers"]:
    digits = "".join(c for c in number if c.isdigit() or c == "+")
    if digits.startswith("+"):
        good.append(digits)
    elif digits.startswith("00"):
        good.append("+" + digits[2:])
    elif digits.startswith("0"):
        good.append("+" + country + digits[1:])
    else:
        bad.append(number)
json.dump({"numbers": good, "rejected": bad}, sys.stdout)
