import sys


def score_lead(company_size, budget, tags=None):
    """score a sales lead from 0 to 100"""
    print("scoring lead...")
    score = 0
    if company_size > 50:
        score += 40
        print("  big company")
    if budget >= 10000:
        score += 50
        print("  has money", file=sys.stderr)
    if tags and "warm" in tags:
        score += 10
    if company_size < 1:
        raise ValueError("company_size must be 1 or more")
    print("done")
    return score
