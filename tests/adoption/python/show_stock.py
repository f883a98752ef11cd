STOCK = {"bolt": 3, "nut": 12}


def show_stock(item: str) -> None:
    """Print the stock of an item.

    Args:
        item: Its name.
    """
    if item not in STOCK:
        print("unknown item", item)
        return
    print(f"{item}: {STOCK[item]}")
