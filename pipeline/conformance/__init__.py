"""Conformance of clients to the protocol, from a journal; comparison of two runs."""
