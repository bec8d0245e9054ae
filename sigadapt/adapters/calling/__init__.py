"""How a model calls tools: natively, or in words (`tool_calling`)."""
