#!/usr/bin/env python3
import argparse
import json


def main():
    parser = argparse.ArgumentParser(description="Statistics about a text.")
    parser.add_argument("text", help="the text to look at")
    parser.add_argument("-m", "--min-length", type=int, default=1, help="ignore words shorter than this")
    parser.add_argument("--case-sensitive", action="store_true", help="tell Word and word apart")
    parser.add_argument("--sort", choices=["alpha", "count"], default="alpha", help="order of the words")
    args = parser.parse_args()

    text = args.text if args.case_sensitive else args.text.lower()
    words = [w for w in text.split() if len(w) >= args.min_length]
    counts = {}
    for w in words:
        counts[w] = counts.get(w, 0) + 1
    if args.sort == "count":
        order = sorted(counts, key=lambda w: (-counts[w], w))
    else:
        order = sorted(counts)
    print(json.dumps({"total": len(words), "words": [[w, counts[w]] for w in order]}))


if __name__ == "__main__":
    main()
