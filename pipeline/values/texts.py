"""Cleans text from JSON."""

import re
from typing import Final

_LONE: Final = re.compile("[\ud800-\udfff]")


def sound(text: str) -> str:
    """Return the text with U+FFFD for unpaired surrogates, which JSON can express and UTF-8 cannot."""
    return _LONE.sub("\ufffd", text)
