"""Share groups (KIP-932): members, assignment, and initialization of share partitions (groups D.1 to D.3)."""
