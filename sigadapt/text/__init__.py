"""Calls that a model wrote into its text: openers -> reader -> bodies, and the gate for streams.

`formats.py` is the table: a row says what the calls of one format look like, over one of `bodies/`.
`openers.py` puts everything that can begin in a text into one grammar, and `reader.py` goes through a text
from opener to opener, past what `quotations.py` knows. `gate.py` holds back what may be a call while a text
streams.
"""
