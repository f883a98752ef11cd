#!/bin/sh
# welcome_mail.sh NAME [PLAN]
# Print the welcome mail for a new customer.

NAME=$1
PLAN=${2:-free}

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: $0 NAME [PLAN]" 1>&2
    exit 1
fi

cat <<MAIL
Dear $NAME,

welcome to the $PLAN plan.
It costs \$0 until you say otherwise.

Yours
MAIL
