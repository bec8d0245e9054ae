"""The chats as this package keeps them: events, the state they lead to, stores and leases."""
