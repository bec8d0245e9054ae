"""How a model calls tools: natively or through the prompt (`tool_calling`)."""
