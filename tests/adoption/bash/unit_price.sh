#!/usr/bin/env bash
# @description Price per kilogram, for the shelf label
# @arg $1 int price in cents
# @arg $2 int weight in grams
# @option -u,--unit <unit> kg or 100g (default: kg)
# @exitcode 1 when the weight is zero

set -e
unit=kg
args=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    -u|--unit) unit="$2"; shift 2 ;;
    *) args+=("$1"); shift ;;
  esac
done
cents=${args[0]}
grams=${args[1]}
if [[ "$grams" -eq 0 ]]; then
  echo "weight is zero" >&2
  exit 1
fi
case "$unit" in
  kg) factor=1000 ;;
  100g) factor=100 ;;
  *) echo "unit is kg or 100g" >&2; exit 2 ;;
esac
awk -v c="$cents" -v g="$grams" -v f="$factor" 'BEGIN { printf "%.2f\n", c / g * f / 100 }'
