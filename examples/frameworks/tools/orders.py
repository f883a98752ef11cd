ORDERS = {"A-17": "shipped", "B-2": "open"}


def find_order(order_id):
    return {"order": order_id, "status": ORDERS.get(order_id, "unknown")}
