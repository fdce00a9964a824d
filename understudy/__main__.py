"""`python -m understudy`, and `python -P .../understudy/__main__.py` as the launcher starts it."""

import sys
from pathlib import Path

if not __package__:  # started by its path: nothing has put the package on sys.path yet
    sys.path.append(str(Path(__file__).resolve().parent.parent))

from understudy.cli import main

if __name__ == "__main__":
    sys.exit(main())
