"""TLS contexts that keep the alert of a failed handshake, which Python's event loop would drop."""

import ssl
from collections import deque
from typing import Any, cast


class AlertingObject(ssl.SSLObject):
    """A TLS object that keeps the alert of a failed handshake, which the event loop would drop."""

    out: ssl.MemoryBIO

    def do_handshake(self) -> None:
        """Continue the handshake. The SSLError of a failure has the alert's bytes as `alert`."""
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, ssl.SSLSyscallError):
            raise
        except ssl.SSLError as error:
            error.alert = self.out.read()  # type: ignore[attr-defined]
            raise


class AlertingContext(ssl.SSLContext):
    """A context whose failed handshakes keep their alerts, and which takes bytes read before the handshake."""

    sslobject_class = AlertingObject
    arrived: deque[bytes]
    """For each requested handshake, the bytes read before it; the event loop begins the handshakes in this order."""

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        """See `ssl.SSLContext`."""
        if self.arrived:
            incoming.write(self.arrived.popleft())
        wrapped = super().wrap_bio(incoming, outgoing, *args, **kwargs)
        cast("AlertingObject", wrapped).out = outgoing
        return wrapped
