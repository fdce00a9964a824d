"""How the generator draws each kind of step."""
