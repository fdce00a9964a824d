"""Texts out of JSON as every reader can take them."""

import re
from typing import Final

_LONE: Final = re.compile("[\ud800-\udfff]")


def sound(text: str) -> str:
    """The text, with U+FFFD for halves of characters (surrogates), which JSON can name and UTF-8 does not have."""
    return _LONE.sub("\ufffd", text)
