"""The calls of one turn: what to do with each, and how they run side by side."""
