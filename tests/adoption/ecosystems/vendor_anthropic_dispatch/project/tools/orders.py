def lookup_order(**kwargs):
    return {"order": kwargs["order_id"]}
