"""From parsed options to a running server: the last step of `understudy serve`."""

import sys
from collections.abc import Mapping, Sequence

from broker.options import OptionError, parse


def main(given: Mapping[str, Sequence[str]]) -> int:
    """Run the server and return the exit code; 2 and one sentence on stderr if an option is invalid."""
    try:
        options = parse(given)
    except OptionError as error:
        print(f"understudy serve: {error}", file=sys.stderr)
        return 2
    from broker.__main__ import serve

    code: int = serve(options)
    return code
