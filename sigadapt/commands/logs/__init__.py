"""The verbs about recorded traffic, one file for each."""
