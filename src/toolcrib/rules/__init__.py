"""Each judges a call and says why.

Rules explain and ask; the walls are the jail and the sandbox. A rule reads what a call says, as a careful colleague
would: it catches accidents and plain attacks early, names the reason and the cure, and asks a person where it cannot
know. It does not stop somebody who is determined; nothing here may be taken for a reason to lower a wall.
"""
