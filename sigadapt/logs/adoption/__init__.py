"""What a log becomes: conversations, rows with gold calls, and a program, one file for each idea."""
