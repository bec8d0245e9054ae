"""Plan and inputs to a Request: the canonical one, and what its route makes of it."""
