"""TLS: the broker's certificate decides whether a client may write."""

from understudy.exam import security
from understudy.exam.exercise import Exercise
from understudy.exam.scenario import Play, scenario
from understudy.exam.scenarios.connection import LOST, check_written
from understudy.exam.scenarios.sasl import refusals, require_cause


@scenario(
    "tls/plain",
    "The listener uses TLS",
    rule="core G; ssl.truststore.location",
    needs="producer tls",
    steers="listeners",
    correct="Checks the certificate, and continues as on any connection.",
    loss=LOST,
)
def plain(exercise: Exercise) -> None:
    """Use a valid certificate."""
    check_written(exercise, **security.tls())


def register_certificate(name: str, title: str, listener: str) -> Play:
    """Register a scenario with a broker whose certificate is not valid."""

    @scenario(
        f"tls/{name}",
        title,
        rule="RFC 5280 section 6, RFC 6125; ssl.endpoint.identification.algorithm=https",
        needs="producer tls",
        steers="listeners",
        correct="Ends the handshake, and reports why.",
        loss="Records and passwords, handed to any server that answers at the address.",
    )
    def play(exercise: Exercise) -> None:
        """Use the library's defaults: only the CA is configured."""
        errors = refusals(exercise, **security.tls(listener))
        sent = [entry.api for entry in exercise.journal()]
        exercise.require(not sent, f"{', '.join(sent[:1])} was sent to a broker that is not known")
        require_cause(exercise, errors)

    return play


register_certificate("other-host", "The certificate is another host's", security.OTHER_HOST)
register_certificate("expired-certificate", "The certificate has expired", security.EXPIRED)
register_certificate("unknown-authority", "An unknown authority signed the certificate", security.UNKNOWN_AUTHORITY)
