#!/bin/bash
# Usage: hello_guest.sh NAME
if [ "$1" = "" ]; then
  echo "name, please
fi
echo Hello $1
