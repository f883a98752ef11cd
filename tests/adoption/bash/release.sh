#!/usr/bin/env bash
set -Eeuo pipefail
readonly VERSION="1.2.0"

die() { echo "error: $*" >&2; exit 1; }

cmd_build() {
  local target="${1:?target is needed}"
  echo "build $target"
}

cmd_tag() {
  local name="$1"; local message="${2:-release}"
  echo "tag $name: $message"
}

main() {
  local cmd="${1:-help}"; shift || true
  case "$cmd" in
    build) cmd_build "$@" ;;
    tag) cmd_tag "$@" ;;
    version|--version|-v) echo "$VERSION" ;;
    help|-h|--help) echo "usage: release.sh {build TARGET|tag NAME [MESSAGE]|version}" ;;
    *) die "unknown command $cmd" ;;
  esac
}

main "$@"
