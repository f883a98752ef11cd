#!/usr/bin/env bash
#
# vat.sh <net_cents> <rate>
#
# net_cents  amount without tax, in cents
# rate       percent, a whole number: 0, 10 or 20

set -eu

net_cents=${1:?net_cents is missing}
rate=${2:?rate is missing}

case "$rate" in
  0|10|20) ;;
  *) echo "rate must be 0, 10 or 20" >&2; exit 3 ;;
esac

tax=$(( (net_cents * rate + 50) / 100 ))
printf '{"net": %d, "tax": %d, "gross": %d}\n' "$net_cents" "$tax" "$((net_cents + tax))"
