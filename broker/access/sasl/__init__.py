"""SASL mechanisms on the broker's side: they process tokens and never wait (core G.3, G.4, G.6)."""
