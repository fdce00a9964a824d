"""How binding a rule of the exam is."""

from enum import Enum


class Level(Enum):
    """How binding the rule is (RFC 2119)."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"
