#!/bin/bash
# Usage: disk_alert.sh USED_PERCENT [LIMIT]
#
# Says whether a disk is too full.
#   USED_PERCENT  how full the disk is, 0 to 100
#   LIMIT         alert from here on (default 90)

used="$1"
limit="${2:-90}"

if [ -z "$used" ]; then
  echo "usage: disk_alert.sh USED_PERCENT [LIMIT]" >&2
  exit 64
fi
case $used in
  *[!0-9]*) echo "USED_PERCENT must be a number, not '$used'" >&2; exit 65 ;;
esac

if [ "$used" -ge "$limit" ]; then
  echo "ALERT: $used% of $limit%"
else
  echo "ok"
fi
