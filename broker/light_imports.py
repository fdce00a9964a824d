"""Keeps out what a server does without; imported before everything else of it.

kio imports hypothesis and structlog imports rich where they happen to be installed: a server starts in half the time
without them, and needs neither.
"""

import sys

for _module in ("hypothesis", "rich"):
    sys.modules.setdefault(_module, None)  # type: ignore[arg-type]
