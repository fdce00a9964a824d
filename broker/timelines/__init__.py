"""What happened to a transactional id, a producer or a group, event by event."""
