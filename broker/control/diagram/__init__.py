"""Sequence diagrams, built from the journal, the timelines and the notes on transaction markers.

``calls`` finds the requests, ``events`` the events of the timelines, ``lanes`` the participants; ``steps`` puts them in
order, and ``text``, ``mermaid``, ``drawing`` and ``svg`` render the result.
"""
