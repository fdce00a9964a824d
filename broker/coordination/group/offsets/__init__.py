"""Committed offsets: commits, pending commits of transactions, expiry."""
