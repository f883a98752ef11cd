ORDERS = {"A-17": {"status": "shipped", "total": 40.0}, "B-2": {"status": "open", "total": 9.5}}


def find_order(order_id):
    order = ORDERS.get(order_id)
    return {"found": order is not None, **(order or {})}


def refund(order_id, reason, percent=100):
    total = ORDERS[order_id]["total"]
    return {"amount": round(total * percent / 100, 2), "reason": reason}
