"""Run a server with a registry, or with the schemas of files or of another registry, from command line options."""

import sys
from collections.abc import Mapping, Sequence

from broker.options import OptionError
from registry.options import parse


def main(arguments: Mapping[str, Sequence[str]]) -> int:
    """Run brokers and registry, and return the exit code; 2 and one sentence on stderr if an option is invalid."""
    try:
        options, registry_options = parse(arguments)
    except OptionError as error:
        print(f"understudy serve: {error}", file=sys.stderr)
        return 2
    from registry.server import serve

    return serve(options, registry_options)
