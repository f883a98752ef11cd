#!/usr/bin/env bash
# Print the steps of a deployment as JSON.
set -euo pipefail

env=""
version="latest"
dry_run=false
skip=()

while [[ $# -gt 0 ]]; do
  case "$1" in
    --env) env="$2"; shift 2 ;;
    --env=*) env="${1#*=}"; shift ;;
    --version) version="$2"; shift 2 ;;
    --version=*) version="${1#*=}"; shift ;;
    --skip) skip+=("$2"); shift 2 ;;
    --dry-run) dry_run=true; shift ;;
    -h|--help) echo "deploy_plan.sh --env ENV [--version V] [--skip STEP]... [--dry-run]"; exit 0 ;;
    *) echo "deploy_plan: unknown option $1" >&2; exit 2 ;;
  esac
done

case "$env" in
  staging|production) ;;
  "") echo "deploy_plan: --env is required" >&2; exit 2 ;;
  *) echo "deploy_plan: env must be staging or production" >&2; exit 2 ;;
esac

steps=()
for step in build test upload restart; do
  for s in ${skip[@]+"${skip[@]}"}; do
    [[ $s == "$step" ]] && continue 2
  done
  steps+=("\"$step\"")
done
IFS=,
printf '{"env": "%s", "version": "%s", "dry_run": %s, "steps": [%s]}\n' "$env" "$version" "$dry_run" "${steps[*]}"
