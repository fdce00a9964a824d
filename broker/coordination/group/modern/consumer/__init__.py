"""Consumer groups with server-side assignment (KIP-848, groups C.1 to C.13), after Kafka's package ``modern``."""
