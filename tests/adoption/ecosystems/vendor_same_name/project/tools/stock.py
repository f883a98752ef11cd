def get_stock(sku: str, warehouse: str = "berlin") -> str:
    return f"{sku}@{warehouse}"
