#!/bin/bash
# kv_config.sh get KEY | set KEY VALUE | list
# Settings of the kiosk. Sub-commands as in git.

declare -A conf=([lang]=en [volume]=7 [theme]="dark blue")

cmd_get() {
  [[ -v conf[$1] ]] || { echo "no setting $1" >&2; exit 1; }
  echo "${conf[$1]}"
}
cmd_set() {
  (( $# == 2 )) || { echo "set needs KEY and VALUE" >&2; exit 2; }
  conf[$1]=$2
  echo "$1=$2"
}
cmd_list() {
  for k in "${!conf[@]}"; do echo "$k=${conf[$k]}"; done | sort
}

sub=${1:-list}
shift || true
case $sub in
  get|set|list) "cmd_$sub" "$@" ;;
  *) echo "no such command: $sub" >&2; exit 2 ;;
esac
