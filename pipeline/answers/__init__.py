"""A broker's answers in a wire journal, judged: by themselves, beside their requests and beside each other."""
