"""Values for records."""


def numbered(count: int, prefix: str = "r") -> list[str]:
    """`r00`, `r01`, ...: distinct values whose order can be seen."""
    return [f"{prefix}{number:02}" for number in range(count)]
