"""A streamed answer: what DSPy streams of it is heard, recorded and made whole here."""
