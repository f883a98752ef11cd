class Member:
    def __init__(self, name, role, hours):
        self.name = name
        self.role = role
        self.hours = hours
        self._rate = 25

    def __repr__(self):
        return f"<Member {self.name}>"


CREW = {"ann": Member("Ann", "light", 8), "bob": Member("Bob", "sound", 0)}


def crew_member(login):
    """Look up one of the crew."""
    if login not in CREW:
        raise KeyError(f"nobody has the login {login}")
    return CREW[login]


def crew_hours(login):
    """Hours of one of the crew."""
    return crew_member(login).hours
