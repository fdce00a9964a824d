"""TLS contexts that keep the alert of a failed handshake: Python's event loop would drop it."""

import ssl
from collections import deque
from typing import Any, cast


class AlertingObject(ssl.SSLObject):
    """Keeps what a failed handshake has to send: the event loop would drop it."""

    out: ssl.MemoryBIO

    def do_handshake(self) -> None:
        """Continue the handshake. An error has the bytes of its alert as `alert`."""
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, ssl.SSLSyscallError):
            raise
        except ssl.SSLError as error:
            error.alert = self.out.read()  # type: ignore[attr-defined]
            raise


class AlertingContext(ssl.SSLContext):
    """A context whose failed handshakes keep their alerts, and which takes what was read before they began."""

    sslobject_class = AlertingObject
    arrived: deque[bytes]
    """Of each handshake that was asked for: the event loop begins them in this order, each in its next turn."""

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        """As in `ssl.SSLContext`."""
        if self.arrived:
            incoming.write(self.arrived.popleft())
        made = super().wrap_bio(incoming, outgoing, *args, **kwargs)
        cast("AlertingObject", made).out = outgoing
        return made
