"""Response to Choice: a body or a stream to a Reading, and that to typed calls."""
