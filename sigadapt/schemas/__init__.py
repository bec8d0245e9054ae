"""JSON, JSON Schema and a call's arguments: the ground floor, which knows no tools and no DSPy."""
