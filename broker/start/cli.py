"""The last step of `understudy serve`: from the arguments to a running server."""

import gc
import sys
from collections.abc import Mapping, Sequence

from broker.options import OptionError, parse


def main(arguments: Mapping[str, Sequence[str]]) -> int:
    """Run the server and return its exit code; for an invalid option, print one sentence to stderr and return 2."""
    try:
        options = parse(arguments)
    except OptionError as error:
        print(f"understudy serve: {error}", file=sys.stderr)
        return 2
    gc.disable()  # nothing that an import makes is garbage: collections are a tenth of the time that the imports take
    from broker.start.server import serve

    gc.freeze()
    gc.enable()
    code: int = serve(options)
    return code
