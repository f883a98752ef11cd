# string_lib.sh - functions of ours; source it
# . ./string_lib.sh

# upper TEXT: TEXT in capitals
upper() {
  printf '%s\n' "${1^^}"
}

# repeat TEXT TIMES: TEXT that many times
repeat() {
  local text="$1" times="$2" out=""
  for ((i = 0; i < times; i++)); do
    out+="$text"
  done
  printf '%s\n' "$out"
}

# pad_left TEXT WIDTH [CHAR]
pad_left() {
  local text="$1" width="$2" char="${3:-0}"
  while ((${#text} < width)); do
    text="$char$text"
  done
  echo "$text"
}
