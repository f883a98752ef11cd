print("Weekly report")
print("=" * 13)
for day, n in {"Mon": 3, "Tue": 5}.items():
    print(f"{day}\t{n}")
