"""Tools that providers run: how they are declared, and what they left in an answer."""
