#!/bin/bash
# Remove old files of a folder (the second argument says how many to keep).
cd "$1" || exit 3
ls | sort | head -n "-$2"
