"""Request -> dspy.LM -> Response: the only folder that uses DSPy's clients and streams, lm15 and LiteLLM."""
