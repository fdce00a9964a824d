"""Fetches and builds the clients of other languages before their tests ask for them.

    python -m tests.clients.prepare

A part that cannot be had is reported and skipped; the tests that need it fail, with the reason.
"""

import sys
import time
from collections.abc import Callable
from functools import partial

from tests.clients.clients import GO, JAVA, JAVASCRIPT, PYTHON, RUST, TRANSACTIONS
from tests.clients.drivers import HERE, command, missing

OTHER_PARTS = ("spark", "old_java", "kerberos")


def main() -> int:
    """Prepare each driver, the slowest languages first; 1 if one of them could not be."""
    failed = 0
    drivers = (*GO, *JAVASCRIPT, *RUST, *JAVA, *PYTHON, *TRANSACTIONS)
    parts = dict.fromkeys([each.part for each in drivers if each.part] + list(OTHER_PARTS))
    works: list[tuple[str, Callable[[], object]]] = [
        *((part, partial(command, [HERE / "setup.sh", part])) for part in parts),
        *((each.name, each.build) for each in drivers if not missing(each)),
    ]
    for name, work in works:
        began = time.monotonic()
        try:
            work()
        except Exception as error:  # noqa: BLE001 - any of them
            failed = 1
            sys.stderr.write(f"{name}: {str(error)[-500:]}\n")
        sys.stdout.write(f"{name:36} {time.monotonic() - began:6.1f} s\n")
        sys.stdout.flush()
    return failed


if __name__ == "__main__":
    sys.exit(main())
