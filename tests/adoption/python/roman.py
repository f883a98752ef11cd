import sys

# usage: roman.py NUMBER

TABLE = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
         (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]

if len(sys.argv) != 2:
    print("usage: roman.py NUMBER", file=sys.stderr)
    sys.exit(2)

n = int(sys.argv[1])
if not 0 < n < 4000:
    sys.exit("NUMBER must be 1 to 3999")

out = ""
for value, letters in TABLE:
    while n >= value:
        out += letters
        n -= value
print(out)
