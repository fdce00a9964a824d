"""Who is at the other end of a connection (core G.1, G.2, G.5; KIP-43, KIP-152, KIP-368).

:mod:`gate` decides what a connection may send before and after it has said who it is, and again where that holds for
a while only; :mod:`guard` puts it between the connections and the dispatcher. Passwords are checked by
:mod:`broker.sasl`.
"""
