"""Transaction coordinator: one state machine per partition of ``__transaction_state`` (KIP-98, KIP-360, KIP-890).

``machine`` has the operations, ``transitions`` builds the record of a transition, ``epochs`` assigns producer ids and
epochs, ``end`` checks EndTxn against the state; ``states`` holds the tables that all of them use.
"""
