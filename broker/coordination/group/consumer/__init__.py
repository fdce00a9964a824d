"""Groups of the new protocol, which the coordinator itself assigns (KIP-848, groups C), after Kafka's ``modern``."""
