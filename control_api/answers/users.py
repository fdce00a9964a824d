"""SCRAM users; passwords and values derived from them are never returned."""

from dataclasses import dataclass
from typing import TypedDict

from control_api.users import Mechanism


@dataclass(frozen=True, slots=True)
class User:
    """A SCRAM user, and the mechanisms that the user can log in with."""

    name: str
    mechanisms: tuple[Mechanism, ...]


class Users(TypedDict):
    """All SCRAM users, by name."""

    users: list[User]
