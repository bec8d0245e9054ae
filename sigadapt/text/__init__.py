"""Calls that a model wrote into its text: openers -> reader -> formats, and the gate for streams.

`openers.py` is the table of everything that can begin in a text. `reader.py` goes through a text from opener
to opener, past what `quotations.py` and `thinking.py` know, and asks `formats/` where one of theirs stands.
`gate.py` holds back what may be a call while a text streams.
"""
