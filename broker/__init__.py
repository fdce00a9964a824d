"""The emulated cluster: sockets, request handlers, coordinators, replication. It decides and waits."""
