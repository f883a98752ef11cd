#!/bin/bash
# Say hello.
name="$1"
if [ -n "$name" ]; then
  echo "Hello, $name"
fi
