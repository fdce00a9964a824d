"""Audits: SQL checks over the tables of a data directory and a wire journal, one for each kind of inconsistency.

`registry` reads the checks from `checks/`, one SQL file each; `tables` makes their tables, `findings` runs them.
"""
