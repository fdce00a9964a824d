"""Share groups (KIP-932): members, assignment, and which share partitions have a state (groups D.1 to D.3)."""
