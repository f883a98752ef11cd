#!/usr/bin/env bash
# rename_plan.sh - plan renames
#
# Usage: rename_plan.sh [-n] [-p PREFIX] [-c COUNT] FILE...
#   -n          dry run
#   -p PREFIX   what to put first (default: old_)
#   -c COUNT    at most so many
set -euo pipefail

usage() { grep '^#' "$0" | cut -c3-; exit 64; }

prefix=old_
count=0
dry=no
while getopts ":np:c:h" opt; do
  case "$opt" in
    n) dry=yes ;;
    p) prefix="$OPTARG" ;;
    c) count="$OPTARG" ;;
    h) usage ;;
    :) echo "option -$OPTARG needs a value" >&2; exit 2 ;;
    \?) echo "unknown option -$OPTARG" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || { echo "no file given" >&2; exit 2; }
i=0
for f in "$@"; do
  i=$((i + 1))
  if [ "$count" -gt 0 ] && [ "$i" -gt "$count" ]; then break; fi
  echo "$f -> $prefix$f ($dry)"
done
