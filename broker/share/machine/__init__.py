"""One share partition as its leader keeps it in memory: no clock, no I/O (groups D.7, Kafka's ``SharePartition``)."""
