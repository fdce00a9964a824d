"""Code that several request handlers share."""
