#!/usr/bin/env bash
# Usage: pipe_count.sh -w WORD [-i] TEXT...
# Count how often WORD occurs in TEXT.
set -euo pipefail

ignore_case=
while getopts "w:i" o; do
  case $o in
    w) word=$OPTARG ;;
    i) ignore_case=-i ;;
    *) exit 2 ;;
  esac
done
shift "$((OPTIND-1))"
: "${word:?-w WORD is required}"

printf '%s\n' "$@" | tr ' ' '\n' | { grep -c $ignore_case -x -F -e "$word" || true; }
