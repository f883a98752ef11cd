#!/bin/bash
# latin_names.sh WHICH: a name of the old address book, in the encoding of the old address book
which=${1:-first}
case $which in
  first)  printf 'M\374ller\n' ;;
  second) printf 'Smith\n' ;;
  *) echo "WHICH is first or second" >&2; exit 2 ;;
esac
