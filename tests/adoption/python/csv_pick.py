"""Pick a column out of CSV that comes on standard input.

Usage: csv_pick.py COLUMN < file.csv
"""
import csv
import sys


def main():
    column = sys.argv[1]
    reader = csv.DictReader(sys.stdin)
    if column not in (reader.fieldnames or []):
        print(f"no column {column}", file=sys.stderr)
        return 1
    for row in reader:
        print(row[column])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
