"""The ways in which calls are written, each shared by the rows of `formats.py` that write so."""
