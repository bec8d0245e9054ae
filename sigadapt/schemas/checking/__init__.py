"""Schemas refused and compiled, and arguments matched against them, within a budget of work."""
