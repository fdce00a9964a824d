"""`understudy exam -- ./driver`: a client library in scripted scenarios, with a verdict and its evidence for each.

A driver is a process that wraps the library under examination (``driver_api``). A scenario (``scenarios``) gives it
commands against a cluster with scripted faults, and then questions three witnesses: what the library reported, what was
on the wire (the journal), and what is in the log (``exercise``, ``witnesses``).
"""
