"""Models of Kafka clients, written from the protocol alone; they import nothing from the broker."""
