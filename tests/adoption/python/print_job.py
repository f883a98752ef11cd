"""Queue of the print shop. Parameter names are those of the old forms."""


def print_job(name: str, arguments: list[str], timeout: int = 30, *, context: str = "none",
              stdin: str = "", help: bool = False, class_: str = "b", type: str = "pdf", id: int = 0,
              input: str = "-", args: dict = {}, kwargs: str = "k") -> dict:
    """Describe a print job."""
    if timeout <= 0:
        raise ValueError("timeout must be positive")
    return {k: v for k, v in locals().items()}
