"""Listeners, connections, TLS, and the limits on what a peer can make the broker hold."""
