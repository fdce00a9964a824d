"""Keeps out what a server does without; imported before everything else of it.

structlog imports rich where it happens to be installed: a server starts faster without it, and does not need it.
"""

import sys

sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
