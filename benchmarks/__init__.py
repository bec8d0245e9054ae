"""What sigadapt costs beside others: `python3 tasks.py bench` writes its section of docs/measured.md."""
