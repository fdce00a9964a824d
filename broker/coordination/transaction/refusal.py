"""A refusal that can name the rule it follows."""

from protocol.errors import ErrorCode, KafkaError


class Refusal(KafkaError):
    """Refused by a rule of the specification, such as ``transactions P10``; ``rule`` is for people who ask why."""

    def __init__(self, code: ErrorCode, rule: str, message: str) -> None:
        super().__init__(code, message)
        self.rule = rule


def concurrent(rule: str) -> Refusal:
    """The refusal of whoever has to wait until the last transaction's markers are written."""
    return Refusal(
        ErrorCode.CONCURRENT_TRANSACTIONS, f"transactions {rule}", "the markers of the last transaction are not written"
    )
