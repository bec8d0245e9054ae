"""JSON Schema and a call's arguments. Nothing in this folder knows tools or DSPy."""
