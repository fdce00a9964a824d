"""`understudy proxy`: faults, journal and explanations in front of a cluster that runs elsewhere.

Clients connect to the proxy, and it connects to the brokers: one listener for each of them, one connection upstream for
each of a client. Requests pass as the bytes that they are, unless a fault or a view has to read them.
"""
