"""Coordinators: pure machines over their own logs, and the runtime that remembers for them."""
