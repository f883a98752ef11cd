#!/usr/bin/python3
import hashlib, sys, pathlib

if len(sys.argv) != 2:
    sys.exit(f"usage: {sys.argv[0]} FILE")
path = pathlib.Path(sys.argv[1])
if not path.exists():
    print("no such file", file=sys.stderr)
    sys.exit(1)
print(hashlib.sha256(path.read_bytes()).hexdigest()[:8], path.name)
