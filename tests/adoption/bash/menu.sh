#!/bin/bash
# choose what to do from a menu
PS3="Your choice: "
select what in "Show date" "Show uptime" "Quit"; do
  case $REPLY in
    1) date ;;
    2) uptime ;;
    3) break ;;
    *) echo "invalid" ;;
  esac
done
