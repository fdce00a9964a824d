"""Explanations of refused requests."""
