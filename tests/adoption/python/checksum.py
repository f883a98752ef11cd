import hashlib


def checksum(data: bytes, algorithm: str = "sha256") -> str:
    """Hex digest of some bytes."""
    try:
        h = hashlib.new(algorithm)
    except ValueError:
        raise ValueError(f"no such algorithm: {algorithm}")
    h.update(data)
    return h.hexdigest()
