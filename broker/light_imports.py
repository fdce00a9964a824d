"""Prevents imports that a server does not need; imported before every other module.

structlog imports rich where it happens to be installed, which slows down the start.
"""

import sys

sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
