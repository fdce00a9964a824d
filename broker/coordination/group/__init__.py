"""Group coordinator: groups of all kinds and committed offsets (groups A.1 to F.7; transactions E.1 to E.4)."""
