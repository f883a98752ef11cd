#!/usr/bin/env bash
verbose=0
output=""
names=()
while [[ $# -gt 0 ]]; do
  case $1 in
    -o|--output)
      output="$2"; shift 2 ;;
    --output=*)
      output="${1#*=}"; shift ;;
    -v|--verbose)
      verbose=1; shift ;;
    --)
      shift; names+=("$@"); break ;;
    -*)
      echo "Unknown option $1"; exit 1 ;;
    *)
      names+=("$1"); shift ;;
  esac
done
echo "output=$output verbose=$verbose names=${names[*]} count=${#names[@]}"
