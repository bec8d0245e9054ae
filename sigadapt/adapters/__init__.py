"""How a declared signature meets a model: the flow from Plan to outputs, one step a file."""
