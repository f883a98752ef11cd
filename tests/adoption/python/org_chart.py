def org_chart(boss: str, reports: list[str]) -> dict:
    """Chart of a team; everybody knows the boss."""
    if boss in reports:
        raise ValueError(f"{boss} cannot report to themselves")
    top = {"name": boss, "team": []}
    for r in reports:
        top["team"].append({"name": r, "boss": top})
    return top
