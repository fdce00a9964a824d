"""Checks from a journal whether clients conform to the protocol, and compares two runs."""
