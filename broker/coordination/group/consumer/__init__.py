"""Groups of the new protocol, assigned by the coordinator (KIP-848, groups C.1 to C.13), after Kafka's ``modern``."""
