"""Broker ids: from the command line, from server.properties, or from an existing data directory.

Any number from 0 on is a valid id, like Kafka's `node.id`. The default is 1 to N.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from storage.checkpoints import META_PROPERTIES, decode_properties, node_id_of
from storage.ownership import REPLACING, RESTORED

MOST_ID = 2**31 - 1  # of an int32
MOST_BROKERS = 1000  # each has listeners, so descriptors; ours, more than any cluster of Kafka has
MOST_CONTROLLERS = 9  # more than any quorum needs
FIRST_CONTROLLER = 3000
"""Id of the first of several controllers, as in the test clusters of Kafka itself."""
_DIRECTORY = re.compile(r"broker-(0|[1-9]\d*)")
_CONTROLLER_DIRECTORY = re.compile(r"controller-(0|[1-9]\d*)")


class BrokerIdError(ValueError):
    """Invalid broker ids; the message is one sentence for the user."""


def number(text: str, option: str, most: int = MOST_ID) -> int:
    """Parse one id. Raises BrokerIdError."""
    if not text.isascii() or not text.isdigit() or int(text) > most:
        raise BrokerIdError(f"{option} needs an id from 0 to {most}, not {text!r}")
    return int(text)


def ids_of_options(brokers: str, first: str | None, settings: Mapping[str, str]) -> tuple[tuple[int, ...], bool]:
    """Return the ids of all brokers, and whether they were given rather than left to the default.

    Args:
        brokers: how many (`3`), or a list of their ids (`0,1,2`; `7,` for one).
        first: the id of the first one, from which the others count up; None: not given.
        settings: `node.id`, or `broker.id`, is used in its place.

    Raises:
        BrokerIdError: an id is not a number from 0 on, or is given twice, or both a list and a first one are given, or
            `node.id` and `broker.id` differ.
    """
    option = "--broker-id"
    texts = {name: settings[name].strip() for name in ("node.id", "broker.id") if name in settings}
    if len({text.lstrip("+0") for text in texts.values()}) > 1:
        raise BrokerIdError("node.id and broker.id must have the same value; give only node.id")
    for name, text in texts.items():
        if first is None and text != "-1":
            first, option = text, name
    if "," in brokers:
        if first is not None:
            raise BrokerIdError(f"--brokers {brokers} already lists the ids; remove {option} {first}")
        ids = tuple(number(part.strip(), "--brokers") for part in brokers.removesuffix(",").split(","))
        if len(set(ids)) != len(ids):
            raise BrokerIdError(f"--brokers {brokers} lists an id twice")
        return ids, True
    if not brokers.isascii() or not brokers.isdigit() or not 1 <= int(brokers) <= MOST_BROKERS:
        raise BrokerIdError(
            f"--brokers needs a number from 1 to {MOST_BROKERS}, or a list of ids such as 0,1,2, not {brokers!r}"
        )
    start = 1 if first is None else number(first, option, MOST_ID - MOST_BROKERS)
    return tuple(range(start, start + int(brokers))), first is not None


def controller_ids(text: str, brokers: Sequence[int]) -> tuple[int, ...]:
    """Return the ids of controllers that are nodes of their own; none if the first broker is the controller.

    Args:
        text: how many (`3`; `1`: the first broker is the controller), or a list of their ids (`101,102`; `101,` for
            one).
        brokers: the ids of the brokers, which no controller may have.

    Raises:
        BrokerIdError: an id is not a number from 0 on, is given twice, or is a broker's.
    """
    if "," in text:
        ids = tuple(number(part.strip(), "--controllers") for part in text.removesuffix(",").split(","))
    elif text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_CONTROLLERS:
        ids = tuple(range(FIRST_CONTROLLER, FIRST_CONTROLLER + int(text))) if int(text) > 1 else ()
    else:
        such = f"a number from 1 to {MOST_CONTROLLERS}, or a list of ids such as 101,102,103"
        raise BrokerIdError(f"--controllers needs {such}, not {text!r}")
    if len(set(ids)) != len(ids) or len(ids) > MOST_CONTROLLERS:
        raise BrokerIdError(f"--controllers {text} lists an id twice, or more than {MOST_CONTROLLERS}")
    if both := sorted(set(ids) & set(brokers)):
        raise BrokerIdError(f"node {both[0]} cannot be a broker and a controller; choose other ids with --controllers")
    return ids


def ids_in_directory(data_dir: Path, ids: Sequence[int], *, several: bool = False) -> tuple[int, ...]:
    """Return the ids of brokers for which no ids are given: those in the data directory first, then the next numbers.

    ``several``: one broker has a folder of its own too.
    """
    if len(ids) == 1 and not several:
        owner = _owner(data_dir)
        return tuple(ids) if owner is None else (owner,)
    present = sorted(directories(data_dir))[: len(ids)]
    following = max([0, *present]) + 1
    return (*present, *range(following, following + len(ids) - len(present)))


def directories(data_dir: Path) -> set[int]:
    """Return the ids of the brokers with a formatted `broker-ID` directory below `data_dir`.

    After a reset or restore that was killed, return the ids of all `broker-ID` directories: all of them were about to
    be replaced, and some may be empty by now.
    """
    is_under_way = any(True for mark in (REPLACING, RESTORED) for _ in data_dir.glob(f"broker-*/{mark}"))
    paths = (
        data_dir.glob("broker-*/") if is_under_way else (p.parent for p in data_dir.glob(f"broker-*/{META_PROPERTIES}"))
    )
    matches = (_DIRECTORY.fullmatch(path.name) for path in paths if path.is_dir())
    return {int(match[1]) for match in matches if match}


def controllers_in_directory(data_dir: Path, ids: Sequence[int]) -> tuple[int, ...]:
    """Return these ids of controllers and those of further ones that have a directory, as controllers may be added."""
    paths = data_dir.glob(f"controller-*/{META_PROPERTIES}") if ids else ()
    matches = (_CONTROLLER_DIRECTORY.fullmatch(path.parent.name) for path in paths)
    return (*ids, *sorted({int(match[1]) for match in matches if match} - set(ids)))


def is_directory_name(name: str) -> bool:
    """Whether a name is that of one node's directory below a data directory of several, such as broker-2."""
    return any(each.fullmatch(name) for each in (_DIRECTORY, _CONTROLLER_DIRECTORY))


def _owner(data_dir: Path) -> int | None:
    places = (data_dir, data_dir / REPLACING, data_dir / RESTORED)  # the latter two: a reset or a restore was killed
    try:
        formatted = next((place for place in places if (place / META_PROPERTIES).exists()), data_dir)
        properties = decode_properties((formatted / META_PROPERTIES).read_bytes())
    except (OSError, ValueError):
        return None
    owner = node_id_of(properties) or ""
    return int(owner) if owner.isascii() and owner.isdigit() else None
