"""Record formats of the internal topics, byte for byte (transactions F.1 to F.4)."""
