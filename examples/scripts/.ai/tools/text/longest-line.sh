#!/bin/bash
# version: 1.0.0
# tool_type: script
# executor_id: bash
# category: text
# description: Give the longest line of a file of the workspace
# requires: [fs.read, shell.execute]
# parameters: [{name: file, type: string, required: true, description: The file, from the workspace.}]

file=$TOOLCRIB_WORKSPACE/$2
longest=""
while IFS= read -r line; do
  if (( ${#line} > ${#longest} )); then longest=$line; fi
done < "$file"
printf '%s\n' "$longest"
