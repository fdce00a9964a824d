"""Transaction markers on their way, and the verification of transactional appends."""
