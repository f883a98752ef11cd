#!/bin/bash
# version: 1.0.0
# tool_type: script
# executor_id: bash
# category: evening
# description: Wash up, and say how far it is
# requires: [shell.execute]
# parameters: [{name: plates, type: integer, required: true, description: How many plates.}]

plates=$1
for plate in $(seq "$plates"); do
  # Without a client of the call there is no channel.
  if [ -n "$TOOLCRIB_CHANNEL" ]; then
    echo "{\"do\": \"progress\", \"progress\": $plate, \"total\": $plates}" >&"$TOOLCRIB_CHANNEL"
  fi
done
echo "$plates plates are clean"
