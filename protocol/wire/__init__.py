"""Readers and writers of every version of every message. Generated, with this line."""
