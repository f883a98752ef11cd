#!/bin/bash
# Small sums.
op=$1; a=$2; b=$3
case "$op" in
  add) echo $((a + b)) ;;
  sub) echo $((a - b)) ;;
  *) echo "usage: $0 {add|sub} A B" >&2; exit 1 ;;
esac
