#!/bin/sh
# Count words of a file, or of standard input.
cat "${1:-/dev/stdin}" | wc -w | tr -d ' '
