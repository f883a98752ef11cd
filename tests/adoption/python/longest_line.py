#!/usr/bin/env python
import sys

longest = ""
for line in sys.stdin:
    line = line.rstrip("\n")
    if len(line) > len(longest):
        longest = line
print(len(longest), longest)
