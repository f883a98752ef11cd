#!/usr/bin/env bash
set -euo pipefail

# backup_name.sh - name of a backup file
#
#   -h HOST    host that is saved (required)
#   -d DATE    date as YYYY-MM-DD (default 2026-01-01)
#   -z         compressed
#   -n COUNT   sequence number

usage() { echo "usage: $0 -h HOST [-d DATE] [-z] [-n COUNT]" >&2; exit 2; }

host="" date="2026-01-01" ext="tar" count=1
while getopts ":h:d:zn:" opt; do
  case "$opt" in
    h) host=$OPTARG ;;
    d) date=$OPTARG ;;
    z) ext="tar.gz" ;;
    n) count=$OPTARG ;;
    \?) echo "unknown option -$OPTARG" >&2; usage ;;
    :) echo "option -$OPTARG needs a value" >&2; usage ;;
  esac
done
shift $((OPTIND - 1))

[[ -n $host ]] || usage
[[ $date =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] || { echo "bad date: $date" >&2; exit 1; }

printf '%s_%s_%03d.%s\n' "$host" "$date" "$count" "$ext"
