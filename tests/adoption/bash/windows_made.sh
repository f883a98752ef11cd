#!/bin/bash
# written on Windows, line ends and all
name="$1"
if [ -z "$name" ]; then
  echo "who?" >&2
  exit 1
fi
echo "Hello $name"
