"""A broker whose answers a test makes, byte for byte where it wants."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from protocol.codec import RequestHeader, decode_header, encode_response
from protocol.types import Message


class Scripted:
    """Answers each request with what the test makes of its header; ``headers`` are those that came, in order."""

    def __init__(self, answer: Callable[[RequestHeader], Message]) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.headers: list[RequestHeader] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """``HOST:PORT``."""
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        """No more."""
        self._listener.close()

    def answer(self, header: RequestHeader, frame: bytearray) -> Message:  # noqa: ARG002 - for brokers that read it
        """The response to a request."""
        return self._answer(header)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self._listener.accept()[0],), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client, client.makefile("rb") as incoming:
            while size := incoming.read(4):
                frame = bytearray(incoming.read(int.from_bytes(size, "big")))
                header = decode_header(frame)
                self.headers.append(header)
                answer = self.answer(header, frame)
                parts = encode_response(header.api_key, header.api_version, header.correlation_id, answer)
                client.sendall(b"".join(parts))
