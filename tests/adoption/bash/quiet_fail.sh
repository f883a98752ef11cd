#!/bin/bash
# quiet_fail.sh DIR  - say whether a folder name is allowed
# Exit code only: 0 allowed, 1 not. Prints nothing when it fails.
dir=$1
warn() { echo "warning: $*" >&2; }

[ -n "$dir" ] || exit 1
case $dir in
  tmp*) warn "temporary folders are emptied" ;;
  */*) exit 1 ;;
esac
printf 'allowed: %s' "$dir"
