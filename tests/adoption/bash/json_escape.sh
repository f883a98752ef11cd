#!/usr/bin/env bash
# Usage: json_escape.sh --key KEY --value VALUE [--pretty]
# Prints {"KEY": "VALUE"} with everything escaped as JSON wants it.

key=
value=
pretty=0
while (( $# )); do
  case $1 in
    -k|--key)    shift; key=$1 ;;
    -v|--value)  shift; value=$1 ;;
    -p|--pretty) pretty=1 ;;
    --)          shift; break ;;
    -*)          printf 'json_escape: no option %s\n' "$1" >&2; exit 2 ;;
  esac
  shift
done

if [[ -z $key ]]; then
  printf 'json_escape: --key must not be empty\n' >&2
  exit 2
fi

escape() {
  local s=$1
  s=${s//\\/\\\\}
  s=${s//\"/\\\"}
  s=${s//$'\n'/\\n}
  s=${s//$'\t'/\\t}
  printf '%s' "$s"
}

if (( pretty )); then
  printf '{\n  "%s": "%s"\n}\n' "$(escape "$key")" "$(escape "$value")"
else
  printf '{"%s": "%s"}\n' "$(escape "$key")" "$(escape "$value")"
fi
