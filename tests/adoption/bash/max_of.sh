#!/bin/bash
# max_of.sh NUMBER... - the greatest of some whole numbers

if (( $# == 0 )); then
  echo "max_of: no numbers given" >&2
  exit 1
fi

max=$1
shift
while (( $# )); do
  if ! [[ $1 =~ ^-?[0-9]+$ ]]; then
    echo "max_of: '$1' is not a whole number" >&2
    exit 2
  fi
  (( $1 > max )) && max=$1
  shift
done
echo "$max"
