"""Recorded traffic of any framework, and what a DSPy program can be made of it."""
