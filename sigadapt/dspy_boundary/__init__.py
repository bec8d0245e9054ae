"""The ground floor, which imports nothing of sigadapt: what is used of DSPy and lm15 that is not public."""
