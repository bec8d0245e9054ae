"""One wire format a module: what a provider's body or stream says, as `reading` describes it."""
