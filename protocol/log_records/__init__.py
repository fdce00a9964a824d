"""The coordinators' own records: how they stand, byte for byte, in the internal topics (transactions F.1-F.4)."""
