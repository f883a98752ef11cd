#!/bin/bash
# @description Greet people
# @param names list of names
# @param --loud say it loud
jq -r '.names[]' | while read -r n; do echo "hi $n"; done
