"""`understudy proxy`: faults, journal and explanations in front of a cluster that runs elsewhere.

Clients connect to the proxy, which has one listener for each broker, and one upstream connection for each client
connection. Requests are forwarded unchanged, byte for byte, unless a fault or a view has to read them.
"""
