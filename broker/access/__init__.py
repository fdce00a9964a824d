"""Authentication and authorization (core G.1, G.2, G.5; KIP-43, KIP-152, KIP-368).

:mod:`sasl_gate` decides which requests a connection may send before and after authentication;
:mod:`broker.request.authentication` puts it in front of the dispatcher. :mod:`broker.access.sasl` checks credentials;
:mod:`authorizer` evaluates the ACLs in the metadata.
"""
