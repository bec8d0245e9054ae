"""Settings every test needs before dspy and litellm are imported: nothing leaves this machine."""

import os
import tempfile

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
os.environ["DSPY_CACHEDIR"] = tempfile.mkdtemp(prefix="sigadapt-dspy-cache-")
