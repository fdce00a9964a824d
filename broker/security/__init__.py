"""Authentication and authorization (core G.1, G.2, G.5; KIP-43, KIP-152, KIP-368).

:mod:`sasl_gate` decides what a connection may send before and after it has authenticated;
:mod:`broker.requests.authentication` puts it between the connections and the dispatcher. Passwords are checked by
:mod:`broker.sasl`; :mod:`authorizer` decides by the ACLs of the metadata.
"""
