"""Empty messages of one version, in both directions."""

from protocol.codec import (
    decode_header,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    message_class,
)


def check_empty_messages(key: int, version: int) -> None:
    """A request and a response with defaults are read as they were written."""
    frame = encode_request(key, version, 5, "client", message_class(key, "Request")())[4:]
    header = decode_header(frame)
    assert (header.api_version, header.client_id) == (version, "client")
    decode_request(bytearray(frame), header)
    answer = b"".join(bytes(part) for part in encode_response(key, version, 5, message_class(key, "Response")()))
    assert decode_response(key, version, answer[4:])[0] == 5
