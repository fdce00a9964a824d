"""`understudy scenario from-journal`: a recorded run becomes a scenario that Understudy plays back.

`journal` reads the files, `items` finds out what a request and its errors are about, `logs` and `start` rebuild what
the cluster had when the run began, `occasions` and `failures` turn what went wrong into faults, `scenario` writes them.
"""
