"""`understudy exam --random`: schedules of application steps and faults, drawn from a seed, against any driver.

`steps` and `faults` are the vocabulary, from which `draw` makes a `schedule`; `play` plays it with the `clients`,
which write a history; `oracle` completes the history by the cluster's log and asks the checks of `understudy audit`.
"""
