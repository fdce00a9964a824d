"""Fault injection: rules, matching, actions, and answers whose bytes are spoiled on purpose."""
