"""Transaction coordinator: one state machine per partition of ``__transaction_state`` (KIP-98, KIP-360, KIP-890).

``machine`` has the operations, ``rules`` checks them against the state, ``transitions`` builds the next record with its
producer id and epoch, ``completion`` follows the markers; ``states`` has the tables that all of them use.
"""
