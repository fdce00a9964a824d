"""Who may do what, and how much (core G; KIP-13, KIP-43, KIP-124, KIP-152, KIP-368).

:mod:`authorizer` evaluates the ACLs of the metadata, :mod:`quotas` and :mod:`rates` hold clients to their quotas,
:mod:`sasl` checks credentials, :mod:`tls` makes the contexts of listeners. What a connection may send before and after
its authentication is decided in :mod:`broker.request.sasl_gate`.
"""
