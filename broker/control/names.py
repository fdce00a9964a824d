"""Parses names of APIs and errors: ``EndTxn`` or ``END_TXN``, in any case."""

from broker.control.problems import unprocessable
from broker.handlers import APIS
from broker.request.api import ServedVersions
from control_api.spelling import suggestion
from protocol.apis import ApiKey
from protocol.errors import ErrorCode

_SERVED = {api.key: api for api in APIS}


def api_key(name: str, field: str) -> ApiKey:
    """Return Kafka's API of that name. Raises Problem 422."""
    plain = name.replace("_", "").lower()
    api = next((key for key in ApiKey if key.title.lower() == plain), None)
    if api is None:
        raise unprocessable(f"there is no API {name!r}{suggestion(name, (key.title for key in ApiKey))}", field)
    return api


def served_api(name: str, field: str) -> ServedVersions:
    """Return an API that this cluster serves. Raises Problem 422."""
    key = api_key(name, field)
    if key not in _SERVED:
        raise unprocessable(f"{key.title} is not served here", field)
    return _SERVED[key]


def error_code(name: str, field: str) -> ErrorCode:
    """Return Kafka's error code of that name. Raises Problem 422."""
    if name.upper() not in ErrorCode.__members__:
        meant = suggestion(name, (code for code in ErrorCode.__members__ if code != ErrorCode.NONE.name))
        raise unprocessable(
            f"there is no error {name!r}{meant or '; use the names of Kafka, such as NOT_COORDINATOR'}", field
        )
    return ErrorCode[name.upper()]
