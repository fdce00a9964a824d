"""Random steps about delegation tokens, by users with and without permission, with hostile values among them.

How numbers are chosen: `pieces`.
"""

from typing import Any

from comparison.histories.drawing.security import Security
from protocol.apis import ApiKey

TOKENS = ("k0", "k1", "k2")
WHO = ("alice", "alice", "bob", "carol", "admin")
"""Users of the steps. Admin is a super user; dave can log in, but only others create tokens for him."""
MINUTE_MS = 60_000
LIFETIMES_MS = (-1, -1, 0, -7, 5 * MINUTE_MS, 1440 * MINUTE_MS, 90 * 1440 * MINUTE_MS, 2**63 - 1, -(2**63))
"""Below and above the broker's limits, a day to renew and a week in all."""
PERIODS_MS = (-1, 0, -7, 10 * MINUTE_MS, 600 * MINUTE_MS, 30 * 1440 * MINUTE_MS, 2**63 - 1, -(2**63))
ODD_PRINCIPALS = (["Group", "staff"], ["user", "alice"], ["", "alice"], ["User", ""], ["User", "*"], ["User", "a:b"])
USER_RESOURCE, TOKEN_RESOURCE, CREATE_TOKENS, DESCRIBE_TOKENS, DESCRIBE, ALLOW, DENY = 7, 6, 13, 14, 8, 3, 2
"""Of ACLs (`protocol.acls`)."""


class Tokens(Security):
    """Draws steps of users who create and use tokens."""

    def _who(self, *, by_token: int = 12) -> str:
        """Draw a connection: of a user, with a token, or without a login."""
        if self._rarely(by_token):
            return f"token:{self._chance.choice(TOKENS)}:{self._chance.randrange(1_000_000)}"
        return "0" if self._rarely(20) else f"as:{self._chance.choice(WHO)}"

    def _token(self) -> str:
        return "k9" if self._rarely(12) else self._chance.choice(TOKENS)

    def _someone(self) -> list[str]:
        if self._rarely(10):
            return list(self._chance.choice(ODD_PRINCIPALS))
        return ["User", self._chance.choice(("alice", "bob", "carol", "dave", "admin"))]

    def _by(self, connection: str, step: dict[str, Any]) -> dict[str, Any]:
        return {**step, "c": connection}

    def _create_token(self) -> dict[str, Any]:
        step = self._step(
            "create_token",
            ApiKey.CREATE_DELEGATION_TOKEN,
            token=self._chance.choice(TOKENS),
            renewers=[self._someone() for _ in range(self._chance.choice((0, 0, 1, 1, 2, 3)))],
            lifetime=self._chance.choice(LIFETIMES_MS),
        )
        # Of another owner since version 3 (KIP-373).
        owner = self._someone() if step["v"] >= 3 and self._rarely(2) else None
        return self._by(self._who(), step) | {"owner": owner}

    def _renew_token(self) -> dict[str, Any]:
        period = self._chance.choice(PERIODS_MS)
        step = self._step("renew_token", ApiKey.RENEW_DELEGATION_TOKEN, token=self._token(), period=period)
        return self._by(self._who(), step)

    def _expire_token(self) -> dict[str, Any]:
        period = self._chance.choice(PERIODS_MS)
        step = self._step("expire_token", ApiKey.EXPIRE_DELEGATION_TOKEN, token=self._token(), period=period)
        return self._by(self._who(), step)

    def _describe_tokens(self) -> dict[str, Any]:
        owners = None if self._rarely(2) else [self._someone() for _ in range(self._chance.choice((0, 1, 1, 2, 3)))]
        step = self._step("describe_tokens", ApiKey.DESCRIBE_DELEGATION_TOKEN)
        return self._by(self._who(by_token=5), step) | {"owners": owners}

    def _allow_tokens(self) -> dict[str, Any]:
        """Draw ACLs on tokens and on users (KIP-373)."""
        principal = f"User:{self._chance.choice(('alice', 'bob', 'carol'))}"
        permission = DENY if self._rarely(5) else ALLOW
        if self._rarely(3):
            what: list[Any] = [TOKEN_RESOURCE, "=*", DESCRIBE]
        else:
            owner = self._chance.choice(("User:alice", "User:bob", "User:dave", "*"))
            what = [USER_RESOURCE, f"={owner}", self._chance.choice((CREATE_TOKENS, DESCRIBE_TOKENS))]
        acl = [what[0], what[1], 3, principal, "*", what[2], permission]
        return self._by("as:admin", self._step("create_acls", ApiKey.CREATE_ACLS, acls=[acl]))
