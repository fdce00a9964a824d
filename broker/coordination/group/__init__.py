"""The group coordinator: classic groups and committed offsets (groups A.1 to B.4; transactions E.1 to E.4)."""
