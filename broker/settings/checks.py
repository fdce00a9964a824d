"""Validators for the tables, with the messages of Kafka's validators (core C.3, appendix 2 and appendix 3).

Each returns the full message, or None. Most messages are built by `invalid`.
"""

import re
from functools import cache

from broker.settings.model import Check, Row, Value
from broker.settings.values import drops_duplicates, elements_of, invalid, shown
from control_api.plugins import is_reference

_REPLICAS = r"([0-9]+:[0-9]+)?"
_VOTER = r"(\d+)@.*"
_HOST_PORT = r"(?:[a-zA-Z][a-zA-Z\d+.-]*://)?\[?([0-9a-zA-Z\-._%:]*)\]?:([0-9]+)"
_MOST_DIGITS = 19  # of an int64, without leading zeros
# Days, hours, minutes, seconds and fraction, each with its own sign, as in java.time.Duration.
_DURATION = (
    r"(?i)([-+]?)P(?:([-+]?\d+)D)?"
    r"(?:T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?"
)


class Between:
    """A number from `least` to `most`, both included (ConfigDef.Range)."""

    __slots__ = ("least", "most")

    def __init__(self, least: float, most: float | None = None) -> None:
        self.least = least
        self.most = most

    def __call__(self, name: str, value: Value) -> str | None:
        """Return Kafka's error message, or None."""
        assert isinstance(value, (int, float))  # only numbers have ranges
        if value < self.least:
            return invalid(name, str(shown(value)), f"Value must be at least {self.least}")
        if self.most is not None and value > self.most:
            return invalid(name, str(shown(value)), f"Value must be no more than {self.most}")
        return None


@cache
def at_least(least: int) -> Check:
    """Return a validator for numbers not below `least`."""
    return Between(least)


def between(least: float, most: float) -> Check:
    """Return a validator for numbers from `least` to `most`, both included."""
    return Between(least, most)


class ValidList:
    """A list without empty elements, of any strings or only `allowed` ones (ConfigDef.ValidList).

    Duplicate elements are removed before this check.
    """

    __slots__ = ("allowed", "may_be_empty")
    drops_duplicates = True

    def __init__(self, *allowed: str, may_be_empty: bool = True) -> None:
        self.allowed = allowed
        self.may_be_empty = may_be_empty

    def __call__(self, name: str, value: Value) -> str | None:
        """Return Kafka's error message, or None."""
        assert isinstance(value, tuple)  # only lists have this validator
        if not value and not self.may_be_empty:
            choice = f"[{', '.join(self.allowed)}]" if self.allowed else "any non-empty value"
            return f"Configuration '{name}' must not be empty. Valid values include: {choice}"
        for element in value:
            if not element:
                return without_blanks(name, value)
            if self.allowed and element not in self.allowed:
                return invalid(name, element, f"String must be one of: {', '.join(self.allowed)}")
        return None


def duplicates_problem(row: Row, text: str) -> str | None:
    """Return the problem of a list with duplicates, if its duplicates are otherwise dropped."""
    if not drops_duplicates(row):
        return None
    elements = elements_of(text)
    return None if len(set(elements)) == len(elements) else f"Configuration '{row.name}' values must not be duplicated."


def without_blanks(name: str, value: Value) -> str | None:
    """Refuse empty elements of a list whose duplicates are checked separately."""
    assert isinstance(value, tuple)  # only lists have this validator
    return f"Configuration '{name}' values must not be empty." if "" in value else None


ANY_LIST = ValidList()
FILLED_LIST = ValidList(may_be_empty=False)


def one_of(*allowed: str) -> Check:
    """Return a validator for one of these strings, case-sensitive."""

    def check(name: str, value: Value) -> str | None:
        if value in allowed:
            return None
        return invalid(name, str(value), f"String must be one of: {', '.join(allowed)}")

    return check


def one_of_any_case(*allowed: str) -> Check:
    """Return a validator for one of these strings, case-insensitive; the value is kept as written."""

    def check(name: str, value: Value) -> str | None:
        if str(value).upper() in allowed:
            return None
        return invalid(name, str(value), f"String must be one of (case insensitive): {', '.join(allowed)}")

    return check


def filled(name: str, value: Value) -> str | None:
    """Refuse an empty string."""
    return None if value else invalid(name, "", "String must be non-empty")


def gzip_level(name: str, value: Value) -> str | None:
    """Refuse a gzip level other than -1, the codec's own default, and 1 to 9."""
    if value == -1 or (isinstance(value, int) and 1 <= value <= 9):  # the levels of zlib; -1 is its default
        return None
    return invalid(name, str(value), "Value must be between 1 and 9 or equal to -1")


def throttled_replicas(name: str, value: Value) -> str | None:
    """Refuse all but `*` or elements partition:broker (ThrottledReplicaListValidator). Quirk: empty ones pass."""
    assert isinstance(value, tuple)  # only lists have this validator
    if "".join(value).strip() == "*" or all(re.fullmatch(_REPLICAS, element.strip()) for element in value):
        return None
    form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    reason = f"{name} must be the literal '*' or a list of replicas in the following format: {form}"
    return invalid(name, f"[{', '.join(value)}]", reason)


def share_offset_reset(name: str, value: Value) -> str | None:
    """Refuse all but `earliest`, `latest` and `by_duration:` with a non-negative ISO 8601 duration (groups 0.7)."""
    text = str(value)
    if text in {"earliest", "latest"}:
        return None
    behind_ns = _duration_ns(text.removeprefix("by_duration:")) if text.startswith("by_duration:") else None
    if behind_ns is not None and behind_ns >= 0:
        return None
    form = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    return invalid(name, text, f"Invalid value `{text}` for configuration {name}. {form}")


def duration_ms(text: str) -> int | None:
    """Parse an ISO 8601 duration (`P1DT2H3M4.5S`, as java.time.Duration) into milliseconds; None if it is invalid."""
    total_ns = _duration_ns(text)
    return None if total_ns is None else abs(total_ns) // 1_000_000 * (-1 if total_ns < 0 else 1)


def _duration_ns(text: str) -> int | None:
    match = re.fullmatch(_DURATION, text, re.ASCII)
    if match is None or text[-1] in "PpTt":
        return None
    sign, *amounts, fraction = match.groups()
    days, hours, minutes, seconds = map(_number, amounts)
    if days is None or hours is None or minutes is None or seconds is None:
        return None
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if abs(total) >= 1 << 63:  # more than a Duration holds
        return None
    part_ns = int((fraction or "").ljust(9, "0"))  # nanoseconds: nine digits
    total_ns = total * 1_000_000_000 + (-part_ns if (amounts[3] or "").startswith("-") else part_ns)
    return -total_ns if sign == "-" else total_ns


def _number(text: str | None) -> int | None:
    """Return an optional number, which may have leading zeros; None if it has more digits than an int64."""
    digits = (text or "").lstrip("+-").lstrip("0")
    if len(digits) > _MOST_DIGITS:
        return None
    return int(digits or 0) * (-1 if (text or "").startswith("-") else 1)


def quorum_servers(name: str, value: Value) -> str | None:
    """Refuse elements other than host:port (`controller.quorum.bootstrap.servers`)."""
    assert isinstance(value, tuple)  # only lists have this validator
    for element in value:
        if not re.fullmatch(_HOST_PORT, element):
            form = 'Each entry should be in the form "{host}:{port}"'
            return f"Failed to parse host name from {element} for the configuration {name}. {form}"
    return None


def quorum_voters(name: str, value: Value) -> str | None:
    """Refuse elements other than id@host:port (`controller.quorum.voters`)."""
    assert isinstance(value, tuple)  # only lists have this validator
    form = "Each entry should be in the form `{id}@{host}:{port}`."
    for element in value:
        if re.fullmatch(_VOTER, element) is None:
            return f"Invalid configuration value for {name}. {form}"
        if not re.fullmatch(_HOST_PORT, element.partition("@")[2]):
            return f"Failed to parse host name from entry {element} for the configuration {name}. {form}"
    return None


def version_of_kafka(versions: frozenset[str], name: str, value: Value) -> str | None:
    """Refuse all but known versions and prefixes of them: 2.3 and 2.3.1 mean the latest of 2.3 (MetadataVersion)."""
    text = str(value)
    parts = text.split(".")
    # A release has two numbers, before 1.0 three, such as 0.10.2.
    short = ".".join(parts[: 3 if parts[0] == "0" else 2])
    if text in versions or any(version == short or version.startswith(f"{short}-") for version in versions):
        return None
    written = text if "3.3-IV0" in versions else f"`{text}`"
    return invalid(name, text, f"Version {written} is not a valid version")


AUTHORIZERS = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)
"""Authorizer classes that use Kafka's ACLs: today's, and those of brokers with ZooKeeper since 2.4 and before."""


def authorizer_class(name: str, value: Value) -> str | None:
    """Refuse unknown authorizer classes: a cluster without authorization would not be what the user expects."""
    if not value or value in AUTHORIZERS or is_reference(str(value)):
        return None
    return invalid(name, str(value), f"Only {AUTHORIZERS[0]} is supported, which uses ACLs, or a module:function")


def principals(_name: str, value: Value) -> str | None:
    """Refuse principals, separated by semicolons, without a type (SecurityUtils.parseKafkaPrincipal)."""
    for part in str(value or "").split(";"):
        if part.strip() and ":" not in part:
            return f"expected a string in format principalType:principalName but got {part.strip()}"
    return None


def principal_rules(_name: str, value: Value) -> str | None:
    """Refuse invalid rules, separated by semicolons: a pattern of client ids = the principal for them."""
    for part in str(value or "").split(";"):
        pattern, equals, principal = part.strip().partition("=")
        if part.strip() and not (pattern.strip() and equals and ":" in principal):
            return f"expected rules in format clientIdPattern=principalType:principalName but got {part.strip()}"
    return None
