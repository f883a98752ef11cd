#!/usr/bin/env bash
# Go through the steps of a deployment.
# stream: true
# requires: [shell.execute]
for step in build test ship; do
  echo "$step: done"
done
