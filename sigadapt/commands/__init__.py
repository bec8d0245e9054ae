"""The command `sigadapt`: a demonstration, and a check of tools."""
