#!/bin/bash
# service_ctl.sh {start|stop|status} SERVICE
# Pretends to control a service; the real one is called by cron.

SERVICES="web mail db"

is_known() {
    for s in $SERVICES; do [ "$s" = "$1" ] && return 0; done
    return 1
}

action=$1
service=$2

if ! is_known "$service"; then
    echo "unknown service: $service"
    exit 3
fi

case "$action" in
    start)  echo "starting $service" ;;
    stop)   echo "stopping $service" ;;
    status) [ "$service" = db ] && echo "$service is down" && exit 1
            echo "$service is up" ;;
    *)      echo "Usage: $0 {start|stop|status} SERVICE"; exit 1 ;;
esac
