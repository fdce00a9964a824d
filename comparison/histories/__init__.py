"""Histories: requests in a sequence, made up, played on both clusters, compared, and shortened where these differ."""
