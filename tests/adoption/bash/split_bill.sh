#!/bin/bash
# Split a bill between guests.
#   $1 - total in cents
#   $2 - guests
#   $3 - tip in percent (optional, default 10)

total=$1
guests=$2
tip=${3:-10}

if [[ -z "$total" || -z "$guests" ]]; then
    echo "Usage: $(basename "$0") <total> <guests> [tip]" >&2
    exit 1
fi
echo $(( (total + total * tip / 100) / guests ))
