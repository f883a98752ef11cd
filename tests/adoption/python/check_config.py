"""Check a configuration text and stop with exit code 2 if it is bad, as our CI expects."""
import configparser
import sys


def check_config(text: str, required: list[str] = ["server", "client"]) -> str:
    """Check that an INI text has the sections that are required."""
    parser = configparser.ConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error as e:
        print(f"bad configuration: {type(e).__name__}", file=sys.stderr)
        sys.exit(2)
    missing = [name for name in required if not parser.has_section(name)]
    if missing:
        sys.exit("missing sections: " + ", ".join(missing))
    return f"ok, {len(parser.sections())} sections"
