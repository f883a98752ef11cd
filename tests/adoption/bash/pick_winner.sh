#!/usr/bin/env bash
# Reads one participant per line and prints the winner for a seed.
#
# Arguments:
#   seed - a whole number
# Stdin:
#   participants, one per line
set -euo pipefail

seed="${1-}"
[[ "$seed" =~ ^[0-9]+$ ]] || { echo "error: seed must be a whole number" >&2; exit 22; }

mapfile -t people
if [[ ${#people[@]} -eq 0 ]]; then
  echo "error: nobody takes part" >&2
  exit 1
fi
echo "${people[$(( seed % ${#people[@]} ))]}"
