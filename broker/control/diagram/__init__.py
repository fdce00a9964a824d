"""Sequence diagrams, made of the journal, the timelines and the notes on markers.

``calls`` finds the requests, ``events`` what happened beside them, ``lanes`` who took part; ``steps`` puts them in
order, and ``text``, ``mermaid``, ``drawing`` and ``svg`` show the result.
"""
