"""The recordings behind the measured pages, built from public repositories: `python3 tasks.py corpus`."""
