"""Random generation of each kind of step."""
