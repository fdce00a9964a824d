"""`understudy exam -- ./driver`: tests a client library in scripted scenarios, with a verdict and evidence for each.

A driver is a process that wraps the library under examination (``driver_api``). A scenario (``scenarios``) sends it
commands against a cluster with scripted faults, and then compares three witnesses: what the library reported, what was
on the wire (the journal), and what is in the log (``exercise``, ``witnesses``).
"""
