"""What sigadapt costs beside DSPy and other libraries: `python3 tasks.py bench` writes docs/benchmarks.md."""
