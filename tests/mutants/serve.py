"""A server with one of the mistakes in it: ``python -m tests.mutants.serve NUMBER serve OPTIONS...``."""

import sys

from tests.mutants.test_transactions import MUTANTS
from understudy.cli import main

if __name__ == "__main__":
    with MUTANTS[int(sys.argv.pop(1))].alive():
        sys.exit(main())
