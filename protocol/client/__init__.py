"""A Kafka client without I/O: requests become bytes, bytes become responses. A transport of one's own carries them."""
