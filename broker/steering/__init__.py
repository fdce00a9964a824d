"""What Kafka does not have: faults, journal, timelines."""
