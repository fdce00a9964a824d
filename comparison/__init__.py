"""Two clusters asked the same, and their answers held side by side: one is a real Apache Kafka, the other this one.

It speaks to both by their address and knows nothing of either's inside: imports `protocol` only. `exchange` asks both,
`plain` and `rules` make their answers comparable, `known` lists the differences that have a reason, `histories` makes
up what to ask.
"""
