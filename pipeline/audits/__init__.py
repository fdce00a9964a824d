"""Audits: named questions to the tables of a data directory and a wire journal, one for each way of being wrong.

`registry` reads them from `checks/`, one SQL file each; `tables` makes the tables that they ask, `findings` asks.
"""
