"""Models of Kafka clients, written from the protocol's text: they know the wire, and nothing of the broker's code."""
