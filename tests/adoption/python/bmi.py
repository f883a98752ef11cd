import sys

if len(sys.argv) != 3:
    print("usage: bmi.py WEIGHT_KG HEIGHT_M", file=sys.stderr)
    sys.exit(2)
weight = float(sys.argv[1])
height = float(sys.argv[2])
print(f"{weight / height ** 2:.1f}")
