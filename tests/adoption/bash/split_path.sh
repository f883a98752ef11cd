#!/bin/bash
if [[ $# -lt 2 ]]; then
  echo "Usage: $0 PATH SEPARATOR" >&2
  exit 2
fi
path=$1; sep=$2
IFS="$sep" read -ra parts <<< "$path"
for p in "${parts[@]}"; do
	echo "$p"
done
