"""Converts journal entries into a packet capture, with TCP conversations made up around the messages.

In the capture every broker has port 9092, which Wireshark decodes as Kafka, and its own address (127.0.0.N). A record
set that the journal did not keep whole becomes one batch without records, with the first batch's header.
"""

import struct
from ipaddress import AddressValueError, IPv4Address

from broker.request.connection import Connection
from broker.steering.journal.kept import expand
from broker.steering.journal.ring import Entry
from protocol.checksums import crc32c
from protocol.codec import BadFrame, decode_header
from protocol.records.batch import (
    ATTRIBUTES_POSITION,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CRC_POSITION,
    LENGTH_POSITION,
    LOG_OVERHEAD,
    RECORD_COUNT_POSITION,
    begins_with_batch,
)

HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 101)
"""The file header: version 2.4, microseconds, raw IP packets (link type 101), whole up to tcpdump's usual 262,144."""
PORT = 9092  # at which Wireshark expects Kafka
_SEGMENT_BYTES = 60_000  # with headers below 65,535, the largest IP packet
_MOST_SECONDS = 0xFFFFFFFF
"""The format's limit: times after 2106, to which a clock may be advanced, wrap to 1970."""
_FIN, _SYN, _PUSH, _ACK = 0x01, 0x02, 0x08, 0x10


class _Side:
    """One end of a TCP conversation: its address, and the sequence number of its next byte."""

    __slots__ = ("address", "port", "sequence")

    def __init__(self, address: bytes, port: int) -> None:
        self.address, self.port, self.sequence = address, port, 0


class Capture:
    """Writes the packets of one entry after the other."""

    def __init__(self) -> None:
        self._conversations: dict[int, tuple[_Side, _Side]] = {}
        self._until_us: dict[int, int] = {}

    def packets(self, entry: Entry, connection: Connection | None) -> bytes:
        """Return the packets of a request and its response, after a TCP handshake if the connection is new."""
        out = bytearray()
        began_us = max(entry.at_ms * 1000, self._until_us.get(entry.connection, 0))
        ended_us = self._until_us[entry.connection] = began_us + max(entry.duration_us, 0)
        sides = self._conversations.get(entry.connection)
        if sides is None:
            sides = self._conversations[entry.connection] = _sides(entry, connection)
            self._shake_hands(out, *sides, began_us)
        client, broker = sides
        request, answer = _messages(entry)
        self._send(out, client, broker, began_us, len(request).to_bytes(4, "big") + request)
        if answer is not None:
            self._send(out, broker, client, ended_us, answer)
        if entry.outcome.startswith("closed"):
            self._packet(out, broker, client, ended_us, _FIN | _ACK, b"")
        return bytes(out)

    def _shake_hands(self, out: bytearray, client: _Side, broker: _Side, at_us: int) -> None:
        self._packet(out, client, broker, at_us, _SYN, b"")
        client.sequence += 1
        self._packet(out, broker, client, at_us, _SYN | _ACK, b"")
        broker.sequence += 1
        self._packet(out, client, broker, at_us, _ACK, b"")

    def _send(self, out: bytearray, source: _Side, target: _Side, at_us: int, message: bytes) -> None:
        for at in range(0, len(message), _SEGMENT_BYTES):
            piece = message[at : at + _SEGMENT_BYTES]
            self._packet(out, source, target, at_us, _PUSH | _ACK, piece)
            source.sequence = (source.sequence + len(piece)) & 0xFFFFFFFF  # of 32 bits

    @staticmethod
    def _packet(out: bytearray, source: _Side, target: _Side, at_us: int, flags: int, payload: bytes) -> None:
        acknowledged = target.sequence if flags & _ACK else 0
        # TCP: a header of 5 times 4 bytes, and the largest window: no segment waits for space.
        tcp = struct.pack(
            ">HHIIBBHHH", source.port, target.port, source.sequence, acknowledged, 5 << 4, flags, 65_535, 0, 0
        )
        ends = source.address + target.address
        pseudo = ends + struct.pack(">HH", 6, len(tcp) + len(payload))  # the protocol number of TCP
        tcp = tcp[:16] + _checksum(pseudo + tcp + payload) + tcp[18:]
        # IPv4, 20 bytes of header (5 times 4); not to be fragmented, 64 hops, TCP (6).
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(payload), 0, 0x4000, 64, 6, 0)
        ip = ip[:10] + _checksum(ip + ends) + ends
        size = len(ip) + len(tcp) + len(payload)
        out += (
            struct.pack("<IIII", at_us // 1_000_000 & _MOST_SECONDS, at_us % 1_000_000, size, size) + ip + tcp + payload
        )


def _checksum(data: bytes) -> bytes:
    """Return the one's complement of the one's complement sum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    return (0xFFFF - int.from_bytes(data, "big") % 0xFFFF).to_bytes(2, "big")


def _sides(entry: Entry, connection: Connection | None) -> tuple[_Side, _Side]:
    try:
        host = IPv4Address("127.0.0.1" if connection is None else connection.client_host).packed
    except AddressValueError:
        host = b"\x7f\0\0\1"
    port = entry.connection & 0xFFFF if connection is None else connection.client_port  # 16 bits, below too
    return _Side(host, port), _Side(b"\x7f\0" + (entry.broker & 0xFFFF).to_bytes(2, "big"), PORT)


def hollow(head: bytes) -> bytes:
    """Build a batch with this header and without records; empty for older formats."""
    if not begins_with_batch(head):
        return b""
    batch = bytearray(head[:BATCH_HEADER_SIZE])  # with --journal, the headers of all batches are here
    attributes = int.from_bytes(head[ATTRIBUTES_POSITION : ATTRIBUTES_POSITION + 2]) & ~CODEC_MASK
    struct.pack_into(">i", batch, LENGTH_POSITION, BATCH_HEADER_SIZE - LOG_OVERHEAD)
    struct.pack_into(">H", batch, ATTRIBUTES_POSITION, attributes)
    struct.pack_into(">i", batch, RECORD_COUNT_POSITION, 0)
    struct.pack_into(">I", batch, CRC_POSITION, crc32c(bytes(batch[ATTRIBUTES_POSITION:])))
    return bytes(batch)


def _messages(entry: Entry) -> tuple[bytes, bytes | None]:
    """Return the request frame and the response with its size; omitted record sets become empty batches."""
    try:
        header = decode_header(entry.frame[0] if isinstance(entry.frame, tuple) else entry.frame)
    except BadFrame:
        return (b"" if isinstance(entry.frame, tuple) else bytes(entry.frame)), None
    request, _ = expand(entry.frame, header.api_key, header.api_version, hollow)
    if entry.answer is None:
        return bytes(request), None
    answer, cut = expand(entry.answer, header.api_key, header.api_version, hollow)
    if cut is not None:
        answer = (len(answer) - 4).to_bytes(4, "big") + answer[4:]  # with the size of what is left
    return bytes(request), bytes(answer)
