"""The command `sigadapt`: one file for each verb, and what they share."""

import os

# Without these, LiteLLM and DSPy each download a price list when first used.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
