"""The LiteLLM door: its engines, its streams and its settings."""
