"""
title: Who am I
author: ops
version: 0.1
"""


class Tools:
    def __init__(self):
        pass

    def get_user_name_and_email(self, __user__: dict) -> str:
        """
        Get the name and the e-mail address of the user who asks.
        """
        return f"{__user__['name']} <{__user__['email']}>"

    def initials(self, name: str) -> str:
        """
        Initials of a name.
        """
        return "".join(part[0].upper() for part in name.split())
