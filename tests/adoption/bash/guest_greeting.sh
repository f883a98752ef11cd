# prints a greeting in the language of the guest
# $1 language code, $2 name of the guest
declare -A hello=([de]="Guten Tag" [fr]="Bonjour" [en]="Hello")
lang=${1:-en}
if [[ -z ${hello[$lang]+x} ]]; then
  echo "no greeting for language '$lang' (have: de en fr)" >&2
  exit 4
fi
echo "${hello[$lang]} ${2:-guest}"
