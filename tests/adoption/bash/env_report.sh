#!/bin/sh
set -eu
: "${REGION:=eu}"
name=${1-world}
shout=${2:-}
msg="hello $name from $REGION"
if [ "$shout" = "--shout" ]; then msg=$(printf %s "$msg" | tr a-z A-Z); fi
printf '%s\n' "$msg"
