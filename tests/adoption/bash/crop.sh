#!/bin/bash
# Plan how an image is cropped.
OPTS=$(getopt -o w:h:v --long width:,height:,verbose -n crop.sh -- "$@") || exit 1
eval set -- "$OPTS"
WIDTH=100
HEIGHT=100
VERBOSE=0
while true; do
  case "$1" in
    -w|--width) WIDTH="$2"; shift 2 ;;
    -h|--height) HEIGHT="$2"; shift 2 ;;
    -v|--verbose) VERBOSE=1; shift ;;
    --) shift; break ;;
    *) echo "bad option $1" >&2; exit 1 ;;
  esac
done
FILE="$1"
[ "$VERBOSE" = 1 ] && echo "verbose"
echo "crop $FILE to ${WIDTH}x${HEIGHT}"
