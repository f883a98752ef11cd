#!/bin/bash
# Print one column of CSV text from standard input.
# Usage: csv_column.sh COLUMN < file.csv
col=${1:?which column}
awk -F, -v c="$col" 'NR > 1 { print $c }'
