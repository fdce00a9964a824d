"""`understudy scenario from-journal`: converts a recorded run to a scenario that Understudy plays back.

`journal` reads the files, `items` finds the items and errors of requests, `logs` and `start` rebuild the state of the
cluster when the run began, `occasions` and `failures` turn failures into faults, `scenario` writes the steps.
"""
