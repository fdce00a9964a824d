"""The topics of `--topic`, created at the start."""

from collections.abc import Mapping
from dataclasses import field

from broker.options.values import OptionError, integer, pair
from protocol.deferred import dataclass
from protocol.topic_names import complaint_of

INTERNAL_TOPICS = {
    "__consumer_offsets": "offsets.topic.num.partitions",
    "__transaction_state": "transaction.state.log.num.partitions",
    "__share_group_state": "share.coordinator.state.topic.num.partitions",
}
"""Internal topic -> the setting for its partitions. `--topic` refuses them: coordinators rely on that number."""


@dataclass(frozen=True, slots=True)
class TopicOption:
    """A topic to create at the start; `partitions` None means `num.partitions`."""

    name: str
    partitions: int | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


def topic_option(text: str) -> TopicOption:
    """Parse `NAME[:PARTITIONS[:KEY=VALUE,...]]`; a value may hold commas (cleanup.policy=compact,delete)."""
    name, _, rest = text.partition(":")
    if complaint_of(name) is not None:
        raise OptionError(f"--topic {text!r} does not start with a topic's name")
    if name in INTERNAL_TOPICS:
        raise OptionError(
            f"--topic {name} is an internal topic, which the broker creates when it is needed; "
            f"--set {INTERNAL_TOPICS[name]}=N sets its number of partitions"
        )
    count, _, tail = rest.partition(":")
    configs: dict[str, str] = {}
    key = ""
    for part in tail.split(",") if tail else ():
        if "=" in part:
            key, value = pair(part, f"--topic {name}", "KEY=VALUE after the partitions")
            configs[key] = value
        elif key:
            configs[key] += f",{part}"
        else:
            raise OptionError(f"--topic {name} needs KEY=VALUE after the partitions, not {part!r}")
    # 100,000: more start nowhere, and a mistyped number would fill the memory before it is noticed.
    return TopicOption(name, integer(count, f"--topic {name}", 1, 100_000) if count else None, configs)
