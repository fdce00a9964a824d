"""The group coordinator: classic groups and committed offsets (groups A, B; transactions E)."""
