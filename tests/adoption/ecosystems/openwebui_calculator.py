"""
title: Everyday calculator
author: home lab
version: 0.3.1
license: MIT
description: Percentages, tips and splitting a bill.
requirements: pydantic
"""

from pydantic import BaseModel, Field


class Tools:
    class Valves(BaseModel):
        decimals: int = Field(default=2, description="Digits after the point")
        currency: str = Field(default="EUR")

    def __init__(self):
        self.valves = self.Valves()
        self.citation = False

    def _money(self, value: float) -> str:
        return f"{value:.{self.valves.decimals}f} {self.valves.currency}"

    def percent_of(self, percent: float, total: float) -> float:
        """
        Calculate a percentage of a total.
        :param percent: The percentage, e.g. 15.
        :param total: The total.
        :return: The share.
        """
        return round(total * percent / 100, self.valves.decimals)

    def split_bill(self, total: float, people: int, tip_percent: float = 10) -> str:
        """
        Split a restaurant bill evenly, with a tip.
        :param total: The bill.
        :param people: How many people pay.
        :param tip_percent: The tip in percent.
        """
        return self._money(total * (1 + tip_percent / 100) / people)
