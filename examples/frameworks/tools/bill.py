"""
title: Split a bill
author: home lab
version: 0.3.1
"""


class Tools:
    class Valves:
        currency = "EUR"

    def __init__(self):
        self.valves = self.Valves()

    def split_bill(self, total: float, people: int, tip_percent: float = 10, __user__: dict = {}) -> str:
        """
        Split a restaurant bill evenly, with a tip.
        :param total: The bill.
        :param people: How many people pay.
        :param tip_percent: The tip in percent.
        """
        return f"{total * (1 + tip_percent / 100) / people:.2f} {self.valves.currency}"
