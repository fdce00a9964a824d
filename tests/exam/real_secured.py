"""A real Apache Kafka of one broker with the exam's listeners of TLS and SASL."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not all of them in its __all__
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.differential.cluster import KafkaCluster
from tests.exam.real_cluster import SETTINGS
from tests.ports import free_ports
from understudy.client import Cluster, connect
from understudy.exam import security
from understudy.exam.upstream import OFFERS, PATIENCE_S, UpstreamCluster, opened
from understudy.launcher import ServerProcess, command_line
from understudy.results import JournalEntry

SASL: Final = (security.PASSWORDS, security.SESSIONS)
ITERATIONS: Final = 4_096
SCRAM: Final = "scram-sha-256.sasl.jaas.config"


class Journals:
    """The requests of several proxies, of which a scenario uses one."""

    def __init__(self, proxies: Sequence[Cluster]) -> None:
        self.proxies = proxies

    def find(self, **query: Any) -> list[JournalEntry]:
        """Find entries in the journals of all proxies, one proxy after the other."""
        return [entry for each in self.proxies for entry in each.journal.find(**query)]


class SecuredKafka(UpstreamCluster):
    """Its listeners of SASL are behind a proxy each; TLS ends at a proxy, so clients connect to these directly."""

    offers = OFFERS | {"listeners"}

    def __init__(self, logins: Sequence[Cluster], addresses: dict[str, str], proxy: Cluster, witness: Cluster) -> None:
        super().__init__(proxy, witness)
        self.logins, self.addresses = logins, addresses
        self.faults: Any = logins[0].faults
        self.journal: Any = Journals(logins)
        about = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, ITERATIONS)
        upsertion = UserScramCredentialUpsertion(security.USER, about, security.PASSWORD.encode())
        for future in self.admin.alter_user_scram_credentials([upsertion]).values():
            future.result(PATIENCE_S)

    def info(self) -> Any:
        """Return the addresses of all listeners, as a server of ours describes itself."""
        places = ((name, *address.split(":")) for name, address in self.addresses.items())
        listeners = [SimpleNamespace(name=name, host=host, port=int(port)) for name, host, port in places]
        return SimpleNamespace(as_version="", brokers=[SimpleNamespace(listeners=listeners)])

    def reset(self, *, disconnect: bool) -> None:
        """Reset the proxies of the listeners, then the cluster."""
        for each in self.logins:
            each.reset(disconnect=disconnect)
        super().reset(disconnect=disconnect)


@contextmanager
def secured(folder: Path) -> Iterator[Cluster]:
    """Start Kafka and the proxies."""
    names = (*SASL, *security.KEYSTORES)
    addresses = {name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(len(names)), strict=True)}
    protocols = {name: "SASL_PLAINTEXT" if name in SASL else "SSL" for name in names}
    settings = {
        **SETTINGS,
        **{name: str(value) for name, value in security.settings().items()},
        **{
            f"listener.name.{name.lower()}.{SCRAM}": f"{security.MODULES}.scram.ScramLoginModule required;"
            for name in SASL
        },
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}"
            for name, protocol in {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT", **protocols}.items()
        ),
    }
    listeners = [f"{name}://{address}" for name, address in addresses.items()]
    kafka = KafkaCluster(folder, brokers=1, settings=settings, listeners=listeners)
    processes: list[ServerProcess] = []
    try:
        kafka.start()
        options = (command_line(upstream=addresses[name], port=0, control_port=0) for name in SASL)
        processes.extend(ServerProcess(each, "proxy") for each in options)
        logins = [connect(str(each.ready.control_url)) for each in processes]
        behind = {name: each.bootstrap_servers for name, each in zip(SASL, logins, strict=True)}
        factory = partial(SecuredKafka, logins, {**addresses, **behind})
        with opened(kafka.addresses[0], factory=factory) as cluster:
            yield cluster
    finally:
        for each in processes:
            each.stop()
        kafka.stop(clean=False)
