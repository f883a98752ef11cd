"""
title: Text Utils
author: someone
version: 0.1.0
requirements:
"""
from typing import Optional


class Tools:
    def __init__(self):
        self.citation = True

    def reverse_text(self, text: str, __user__: dict = {}) -> str:
        """
        Reverse a text.
        :param text: The text.
        """
        return text[::-1]

    async def shout(self, text: str, times: int = 1) -> str:
        """
        Shout a text.
        :param text: The text.
        :param times: How often.
        """
        return (text.upper() + "!") * times

    def _private(self):
        return 1
