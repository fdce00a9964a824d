"""Listeners, connections, TLS, and limits on the memory and descriptors that clients can use."""
