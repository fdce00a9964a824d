"""`understudy proxy`: faults, journal and explanations in front of a running Kafka cluster.

Options come from the command line, the environment and a file, like those of `understudy serve`, which shares many.
"""

import os
from collections.abc import Sequence
from dataclasses import replace

from understudy.argparser import refuse
from understudy.serve import OPTIONS as SERVE_OPTIONS
from understudy.serve import Command, Option, gather, run

_SHARED = (
    "host",
    "control-port",
    "control-host",
    "control-token",
    "ready-file",
    "journal",
    "otlp-endpoint",
    "seed",
    "log-format",
    "log-level",
    "lifeline",
)
_AS_SERVED = {option.name: option for option in SERVE_OPTIONS}

OPTIONS = (
    Option(
        "upstream",
        "HOST:PORT[,HOST:PORT...]",
        "bootstrap brokers; the other brokers of the cluster are discovered through them",
        repeatable=True,
    ),
    Option(
        "client-config",
        "FILE",
        "*.properties of a Kafka client: TLS and SASL to brokers; without SASL, the clients' SASL passes through",
    ),
    Option("port", "PORT", "port for the first broker, the others follow; 0: free ports", "19092"),
    Option("advertise", "HOST[:PORT]", "advertised address for clients; each further broker gets the next port"),
    Option(
        "protocol",
        "plaintext|ssl",
        "protocol for clients; ssl needs a certificate, as in Kafka: ssl.keystore.location",
        "plaintext",
    ),
    Option("set", "KEY=VALUE", "setting of the listeners or of the journal, by its name in `serve`", repeatable=True),
    replace(_AS_SERVED["config"], help="*.toml: these options, by name"),
    *(_AS_SERVED[name] for name in _SHARED),
)
PROXY = Command(
    "understudy proxy", "Run in front of a Kafka cluster, to observe its clients and inject faults.", OPTIONS
)


def main(argv: Sequence[str]) -> int:
    """Run the proxy in this process until it receives a signal to stop."""
    options = gather(argv, os.environ, PROXY)
    if "properties" in options:
        refuse(PROXY.program, "--config takes a *.toml file here; settings of a server.properties are given with --set")
    return run(options, "proxy.cli")
