#!/bin/bash
# count_lines.sh: reads text on standard input and counts its lines
# that are not empty. With an argument, only lines that contain it.

pattern="${1:-}"
n=0
while IFS= read -r line || [ -n "$line" ]; do
  [ -z "$line" ] && continue
  if [ -n "$pattern" ]; then
    case "$line" in
      *"$pattern"*) ;;
      *) continue ;;
    esac
  fi
  n=$((n + 1))
done
echo "$n"
