"""Results of calls: one result, its content, pairing results with calls, and the results of a turn."""
