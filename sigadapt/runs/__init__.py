"""Whole runs of agents and loops: what happened in them, how they wait for a person, and how they go on."""
