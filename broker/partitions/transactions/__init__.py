"""Sending of transaction markers, and verification of transactional appends."""
