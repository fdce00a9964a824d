"""The timelines of transactional ids, producers and groups: what happened to each, event by event."""
