#!/usr/bin/env bash
# Say where a notification would go. Needs NOTIFY_CHANNEL in the environment.
# Usage: NOTIFY_CHANNEL=ops notify.sh "message"
set -u
: "${NOTIFY_CHANNEL:?set NOTIFY_CHANNEL first}"
message="$1"
echo "[$NOTIFY_CHANNEL] $message"
