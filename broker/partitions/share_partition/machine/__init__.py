"""In-memory state of a share partition on its leader, without clock or I/O (groups D.7; ``SharePartition``)."""
