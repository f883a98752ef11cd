# written 2009, still in cron
import string

def report(names):
    out = []
    for n in names:
        out.append(string.capitalize(n))
    print "%d names" % len(out)
    return out
