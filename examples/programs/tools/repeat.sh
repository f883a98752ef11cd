#!/bin/bash
# Repeat a text.
usage() {
  echo "Usage: $0 [-n COUNT] [-u] TEXT" >&2
  exit 1
}
count=1
upper=false
while getopts "n:u" option; do
  case "$option" in
    n) count="$OPTARG" ;;
    u) upper=true ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
text="${1:?}"
$upper && text="${text^^}"
for ((i = 0; i < count; i++)); do echo "$text"; done
