"""The runs of chats: how they begin, what they write, and what they ask of the runner."""
