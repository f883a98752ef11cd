import argparse
from string import Template


def key_value(text):
    key, sep, value = text.partition("=")
    if not sep:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


parser = argparse.ArgumentParser(description="Fill a letter.")
parser.add_argument("template", help="text with $placeholders")
parser.add_argument("--set", dest="values", action="append", type=key_value, default=[], metavar="KEY=VALUE")
parser.add_argument("-v", "--verbose", action="count", default=0)
parser.add_argument("--strict", action=argparse.BooleanOptionalAction, default=True)
group = parser.add_mutually_exclusive_group()
group.add_argument("--upper", action="store_true")
group.add_argument("--lower", action="store_true")

args = parser.parse_args()
template = Template(args.template)
values = dict(args.values)
if args.strict:
    try:
        text = template.substitute(values)
    except KeyError as e:
        parser.error(f"no value for {e.args[0]}")
else:
    text = template.safe_substitute(values)
if args.upper:
    text = text.upper()
elif args.lower:
    text = text.lower()
if args.verbose:
    text += f"\n[{len(values)} values]" * args.verbose
print(text)
