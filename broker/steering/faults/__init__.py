"""Fault injection: rules, request matching, actions, and responses with corrupted bytes."""
