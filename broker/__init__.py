"""The broker: decides and waits. Sockets, handlers, coordinators, the cluster that holds them."""
