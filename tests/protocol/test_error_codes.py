"""The codes that the counters find are those that a look at every field finds, in each response."""

from typing import Any

import pytest

from broker.handlers import APIS
from protocol.apis import ApiKey
from protocol.codec import error_codes, message_class
from protocol.errors import ErrorCode
from protocol.items import element_type
from protocol.paths import errors, message_type
from protocol.types import Message, field_types


def filled(cls: type[Message]) -> Message:
    """A message with a code wherever there may be one, and two elements in each list of structs."""
    values: dict[str, Any] = {}
    for name, hint in field_types(cls).items():
        listed, struct = element_type(hint), message_type(hint)
        if listed is not None and issubclass(listed, Message):
            values[name] = [filled(listed), filled(listed)]
        elif struct is not None:
            values[name] = filled(struct)
        elif hint is ErrorCode:
            values[name] = ErrorCode.NOT_COORDINATOR
    return cls(**values)


@pytest.mark.parametrize("key", [api.key for api in APIS], ids=lambda key: key.title)
def test_every_code_of_a_response_is_found(key: ApiKey) -> None:
    """A response without an error has none."""
    response = message_class(key, "Response")
    full = filled(response)
    assert error_codes(full) == list(errors(full))
    assert error_codes(response()) == []


def test_a_fetch_response_has_codes_in_every_partition() -> None:
    """The positive control of the comparison above."""
    full = filled(message_class(ApiKey.FETCH, "Response"))
    assert len(error_codes(full)) == 1 + 2 * 2
