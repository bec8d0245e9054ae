"""Plan -> Request: make the canonical Request of a call, and make it fit for its route."""
