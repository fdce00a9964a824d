"""The leaders' side of share groups: share sessions, share partitions, fetches and acknowledgements (KIP-932)."""
