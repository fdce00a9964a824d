"""Share groups on partition leaders: share sessions, share partitions, fetches and acknowledgements (KIP-932)."""
