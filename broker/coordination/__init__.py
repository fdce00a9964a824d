"""Coordinators: deterministic state machines, and the runtime that writes their records to their logs."""
