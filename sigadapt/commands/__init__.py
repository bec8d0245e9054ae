"""The command `sigadapt`: what can be shown and checked from a terminal."""
