"""The board: sigadapt and other libraries read the same recorded answers: `python3 tasks.py board`."""
