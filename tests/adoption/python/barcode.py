def render(code: str) -> bytes:
    """A barcode as a portable bitmap, one bit per module."""
    if not code.isdigit():
        raise ValueError("a code has digits only")
    bits = "".join(f"{int(c):04b}" for c in code)
    return f"P1\n{len(bits)} 1\n{' '.join(bits)}\n".encode("ascii")


def raw(code: str) -> bytes:
    """The same, packed; not text."""
    if not code.isdigit():
        raise ValueError("a code has digits only")
    return bytes(0xF0 | int(c) for c in code)
