"""What runs for a call of a tool: its function, with the context that it takes, hooks, and a person's yes."""
