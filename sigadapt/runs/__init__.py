"""Whole runs: what a program with tools does from its first request to its last."""
