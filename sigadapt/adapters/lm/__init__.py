"""Request -> dspy.LM -> Response: the only folder that knows DSPy's clients and streams, lm15 and LiteLLM."""
