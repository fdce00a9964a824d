"""Run a proxy from command line options: the last step of `understudy proxy`."""

import sys
from collections.abc import Mapping, Sequence

from broker.options import OptionError
from proxy.options import parse


def main(arguments: Mapping[str, Sequence[str]]) -> int:
    """Run the proxy and return the exit code; 2 and one sentence on stderr if an option is invalid."""
    try:
        options = parse(arguments)
    except OptionError as error:
        print(f"understudy proxy: {error}", file=sys.stderr)
        return 2
    from proxy.server import serve

    return serve(options)
