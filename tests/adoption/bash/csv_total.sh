#!/usr/bin/env bash
set -o errexit -o nounset -o pipefail
# Total of a column of a CSV file that lies beside this script.
# usage: csv_total.sh FILE COLUMN_NUMBER

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

main() {
  local file="$1" column="$2"
  if [[ ! -r "$here/data/$file" ]]; then
    echo "cannot read $file" >&2
    return 66
  fi
  local total=0 first=1 fields
  while IFS=, read -r -a fields; do
    if (( first )); then first=0; continue; fi
    total=$(( total + fields[column - 1] ))
  done < "$here/data/$file"
  echo "$total"
}

main "$@"
