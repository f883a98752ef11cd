import sys

seconds = int(sys.argv[sys.argv.index("--seconds") + 1])
days, rest = divmod(seconds, 86400)
print(f"{days} d {rest // 3600} h")
