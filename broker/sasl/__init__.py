"""SASL's mechanisms, as Kafka's brokers speak them: tokens in, tokens out (core G.3, G.4, G.6). Nothing here waits."""
