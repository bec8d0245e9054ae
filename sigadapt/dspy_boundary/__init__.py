"""The ground floor: what sigadapt uses of DSPy and lm15 that is not public. It imports nothing of sigadapt.

`internals.py` has the names, and `forms.py` the older forms in which DSPy's adapters write and read. A new
version of DSPy changes this folder first.
"""
