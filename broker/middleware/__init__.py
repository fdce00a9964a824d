"""What a request passes on its way to the handler: faults that were asked for, and those who watch."""
