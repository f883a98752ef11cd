#!/usr/bin/env bash
declare -A price=([tea]=3 [milk]=2)
item="${1,,}"
qty="${2:-1}"
if [[ ! -v price[$item] ]]; then echo "no $item" >&2; exit 4; fi
echo "{\"item\": \"$item\", \"sum\": $(( ${price[$item]} * qty ))}"
