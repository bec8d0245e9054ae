"""Scripted runs of sigadapt and four other libraries, each in its own process, judged by code."""
