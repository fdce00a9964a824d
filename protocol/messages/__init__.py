"""One class per API and direction, in its newest shape. Generated, except for this line."""
