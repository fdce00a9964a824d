"""Values of records."""


def numbered(count: int, prefix: str = "r") -> list[str]:
    """Return `r00`, `r01`, ...: distinct values whose order is visible."""
    return [f"{prefix}{number:02}" for number in range(count)]
