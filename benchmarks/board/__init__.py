"""The board: sigadapt and other libraries read the same recorded answers (`tasks.py evidence board`)."""
