"""A server with one of the mistakes in it: ``python -m tests.mutants.serve NUMBER serve OPTIONS...``."""

import sys

from tests.mutants.transactions import TRANSACTIONS
from understudy.cli import main

if __name__ == "__main__":
    with TRANSACTIONS[int(sys.argv.pop(1))].alive():
        sys.exit(main())
