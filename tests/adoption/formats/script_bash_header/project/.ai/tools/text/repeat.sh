#!/usr/bin/env bash
# tool_id: repeat
# version: 1.0.0
# tool_type: bash
# executor_id: bash_runtime
# category: text
# description: Repeat a word
# parameters: [{name: word, type: string, required: true}, {name: times, type: integer, required: false, default: 2}]
set -euo pipefail

word=""
times=2
while [[ $# -gt 0 ]]; do
  case "$1" in
    --word) word="$2"; shift 2 ;;
    --times) times="$2"; shift 2 ;;
    *) echo "unknown option: $1" >&2; exit 64 ;;
  esac
done

out=""
for ((i = 0; i < times; i++)); do out+="$word "; done
echo "${out% }"
