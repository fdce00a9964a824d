"""The cluster's clock, its timers, seeded random numbers, long work in slices."""
