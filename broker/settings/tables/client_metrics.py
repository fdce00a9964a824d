"""Settings of one client metrics subscription (core appendix 2, KIP-714)."""

from broker.settings.checks import ANY_LIST
from broker.settings.model import INT, LIST, Row

ROWS: tuple[Row, ...] = (
    Row("interval.ms", INT, 300_000),
    Row("match", LIST, (), ANY_LIST),
    Row("metrics", LIST, (), ANY_LIST),
)
