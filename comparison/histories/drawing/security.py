"""Random steps about SCRAM users, client quotas, ACLs and features, with boundary and hostile values among them.

How numbers are chosen: `pieces`.
"""

from typing import Any

from comparison.histories.drawing.pieces import Pieces
from protocol.apis import ApiKey

USERS = ("alice", "bob", "carol", "dave", "erin", "frank", "gräta", "h i", "=")
ENTITIES = ("user", "client-id", "ip")
RATES = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
OF_ADDRESSES = ("connection_creation_rate",)
HARMLESS = (1e9, 123456789.0, 5e8)
"""Rates of default quotas, which apply to this client too: nothing may be throttled."""
ADDRESSES = ("=10.0.0.1", "=10.0.0.2", "=::1", "=2001:db8::1", "=0:0:0:0:0:0:0:2")
ODD_ENTITIES: tuple[list[list[str | None]], ...] = (
    [],
    [["group", "x"]],
    [["user", "a"], ["user", "b"]],
    [["", "a"]],
)
EXACT, DEFAULT, ANY_NAME = 0, 1, 2
FEATURES = ("transaction.version", "group.version", "share.version", "streams.version", "metadata.version")
FILTER_ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4  # PatternType, and the first of each other code


class Security(Pieces):
    """Draws steps of an administrator of users, quotas, ACLs and features."""

    def _user(self) -> str:
        return self._chance.choice(USERS[:4] if not self._rarely(4) else USERS)

    # --- SCRAM users -------------------------------------------------------------------------------------------------

    def _mechanism(self, stored: int | None) -> int:
        return self._chance.choice((0, 3, -1, 127)) if self._rarely(12) else stored or self._chance.choice((1, 2))

    def _alter_users(self) -> dict[str, Any]:
        deleted = self._chance.choice((0, 0, 1, 1, 2))
        upserted = self._chance.choice((0, 1, 1, 2, 3))
        # Not both of one mechanism: brokers may not list a user who is added when the mechanism's last one is removed.
        of_deleted = self._chance.choice((1, 2))
        return self._step(
            "alter_users",
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            delete=[[self._user(), self._mechanism(of_deleted)] for _ in range(deleted)],
            upsert=[self._upsertion(3 - of_deleted if deleted else None) for _ in range(upserted)],
        )

    def _upsertion(self, mechanism: int | None) -> list[Any]:
        odd = (4095, 16385, 0, -1, 2**31 - 1)
        iterations = self._chance.choice(odd) if self._rarely(8) else self._chance.choice((4096, 8192, 16384))
        salt = "" if self._rarely(15) else self._chance.choice(("salt", "pepper", "c" * 60))
        password = "" if self._rarely(15) else self._chance.choice(("p" * 32, "q" * 64, "short"))
        return [self._user(), self._mechanism(mechanism), iterations, salt, password]

    def _describe_users(self) -> dict[str, Any]:
        count = self._chance.choice((1, 1, 2, 3, 5))
        users = None if self._rarely(3) else [self._user() for _ in range(0 if self._rarely(8) else count)]
        step = self._step("describe_users", ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
        # Kafka iterates over two maps by the address of an enum constant: users in one bucket are in any order.
        return step | {"users": users} | ({} if users else {"sorted": True})

    # --- client quotas -----------------------------------------------------------------------------------------------

    def _entity(self) -> list[list[str | None]]:
        if self._rarely(25):
            return list(self._chance.choice(ODD_ENTITIES))
        if self._rarely(5):
            return [["ip", None if self._rarely(4) else self._address()]]
        kinds = self._chance.choice((["user"], ["client-id"], ["user", "client-id"], ["client-id", "user"]))
        if self._rarely(20):
            kinds = [*kinds, "ip"]
        return [
            [kind, None if self._rarely(4) else self._address() if kind == "ip" else self._user()] for kind in kinds
        ]

    def _address(self) -> str:
        wrong = ("=", "=nowhere.invalid", "=10.0.0.0/8", "=1.2.3", "=%")
        return self._chance.choice(wrong) if self._rarely(8) else self._chance.choice(ADDRESSES)

    def _operations(self, entity: list[list[str | None]]) -> list[list[Any]]:
        of_address = any(kind == "ip" for kind, _ in entity)
        keys = OF_ADDRESSES if of_address != self._rarely(20) else RATES
        shared = any(name is None for _, name in entity) or of_address
        operations = []
        for _ in range(self._chance.choice((0, 1, 1, 1, 2, 3)) if self._rarely(3) else 1):
            key = "no.such.rate" if self._rarely(25) else self._chance.choice(keys)
            values = HARMLESS if shared else (*HARMLESS, 1.0, 1024.0, 0.5, 100.0, 1e-3)
            value = self._chance.choice(values)
            if self._rarely(10):
                value = self._chance.choice((0.0, -1.0, -0.5, 1.5, 1e19, 1e308, 2147483648.0, 9007199254740993.5))
                value = value if not shared or value > 1e8 or value <= 0 else 1e9
            operations.append([key, None if self._rarely(4) else value])
        return operations

    def _alter_quotas(self) -> dict[str, Any]:
        entities = [self._entity() for _ in range(self._chance.choice((1, 1, 1, 2, 3)))]
        if self._rarely(12):
            entities.append(entities[0])
        entries = [[entity, self._operations(entity)] for entity in entities]
        validate = self._rarely(10) or None
        return self._step("alter_quotas", ApiKey.ALTER_CLIENT_QUOTAS, entries=entries, validate=validate)

    def _describe_quotas(self) -> dict[str, Any]:
        kinds = self._chance.sample(
            ENTITIES[:2] if not self._rarely(4) else ENTITIES, self._chance.choice((0, 1, 1, 2))
        )
        components: list[list[Any]] = []
        for kind in kinds:
            match = self._chance.choice((EXACT, EXACT, DEFAULT, ANY_NAME))
            name = self._address() if kind == "ip" else self._user()
            components.append([kind, match, name if match == EXACT else None])
        if self._rarely(15):
            odd = (
                ["user", 3, None],
                ["user", -1, None],
                ["group", EXACT, "x"],
                ["", EXACT, "x"],
                ["user", EXACT, None],
            )
            components.append(list(self._chance.choice(odd)))
        if self._rarely(15):
            components.append(["user", DEFAULT, "x"])
        strict = self._rarely(2) or None
        fields = {"components": components, "strict": strict}
        return self._step("describe_quotas", ApiKey.DESCRIBE_CLIENT_QUOTAS, **fields)

    # --- ACLs --------------------------------------------------------------------------------------------------------

    def _acl(self, *, wanted: bool = False) -> list[Any]:
        """Draw an ACL, or a filter, in which each part may be ANY."""
        kind = self._chance.choice((2, 2, 3, 4, 5, 6, 7))
        name = "=kafka-cluster" if kind == 4 and not self._rarely(6) else self._user()
        pattern = PREFIXED if self._rarely(4) else LITERAL
        principal = self._chance.choice(("User:@alice", "User:@bob", "User:*", "Group:@staff"))
        host = self._chance.choice(("*", "*", "10.0.0.1", "::1", "10.0.0.0/8", "2001:db8::/32", "10.0.0.1/8"))
        operation, permission = (
            self._chance.choice((2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)),
            2 + self._rarely(3),
        )
        operation, permission = (2 if self._rarely(8) else operation), 3 if permission == 2 else 2
        if self._rarely(8):
            principal = self._chance.choice(("", "User", "User:", ":x", "user:@alice", "User:a:b"))
        if self._rarely(10):
            host = self._chance.choice(
                ("", "somewhere", "10.0.0.0/33", "10.0.0.0/", "/8", "::1/200", " *", "10.0.0.1/0")
            )
        if self._rarely(10):
            kind = self._chance.choice((0, 1, 8, -1, 127))
        if self._rarely(12):
            pattern = self._chance.choice((0, 1, 2, 5, -1))
        if self._rarely(12):
            operation = self._chance.choice((0, 1, 15, 16, -1, 127))
        if self._rarely(12):
            permission = self._chance.choice((0, 1, 4, -1))
        if self._rarely(12):
            name = self._chance.choice(("=", "=*", "=kafka-cluster", "=a/b"))
        acl = [kind, name, pattern, principal, host, operation, permission]
        return self._as_filter(acl) if wanted else acl

    def _as_filter(self, acl: list[Any]) -> list[Any]:
        kind, name, pattern, principal, host, operation, permission = acl
        pattern = self._chance.choice((FILTER_ANY, MATCH, LITERAL, PREFIXED, pattern))
        return [
            FILTER_ANY if self._rarely(2) else kind,
            None if self._rarely(2) else name,
            pattern,
            None if self._rarely(2) else principal,
            None if self._rarely(2) else host,
            FILTER_ANY if not self._rarely(3) else operation,
            FILTER_ANY if not self._rarely(3) else permission,
        ]

    def _create_acls(self) -> dict[str, Any]:
        acls = [self._acl() for _ in range(self._chance.choice((1, 1, 2, 3, 4)))]
        if self._rarely(8):
            acls.append(acls[0])
        return self._step("create_acls", ApiKey.CREATE_ACLS, acls=acls)

    def _delete_acls(self) -> dict[str, Any]:
        filters = [self._acl(wanted=True) for _ in range(self._chance.choice((1, 1, 2, 3)))]
        return self._step("delete_acls", ApiKey.DELETE_ACLS, filters=filters)

    def _describe_acls(self) -> dict[str, Any]:
        return self._step("describe_acls", ApiKey.DESCRIBE_ACLS, filter=self._acl(wanted=True))

    # --- features ----------------------------------------------------------------------------------------------------

    def _update_features(self) -> dict[str, Any]:
        updates = [self._update() for _ in range(self._chance.choice((0, 1, 1, 1, 1, 2, 3)))]
        validate = self._rarely(3) or None
        return self._step("update_features", ApiKey.UPDATE_FEATURES, updates=updates, validate=validate)

    def _update(self) -> list[Any]:
        name = self._chance.choice(FEATURES[:4] if not self._rarely(3) else FEATURES)
        if self._rarely(10):
            name = self._chance.choice(("", "no.such.version", "eligible.leader.replicas.version"))
        level = self._chance.choice((0, 1, 1, 2, 2, 3))
        if name == "metadata.version":
            level = self._chance.choice((0, 1, 6, 7, 24, 28, 29, 30, 31, 100))
        if self._rarely(12):
            level = self._chance.choice((-1, 32767, 40))
        change = self._chance.choice((0, 4, -1)) if self._rarely(10) else self._chance.choice((1, 1, 2, 2, 3))
        return [name, level, self._rarely(2), change]

    def _features(self) -> dict[str, Any]:
        return self._step("features", ApiKey.API_VERSIONS, 3)  # the first version with features (KIP-584)
