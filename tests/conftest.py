"""Settings every test needs before dspy and litellm are imported: nothing leaves the machine, nothing is kept."""

import os
import tempfile

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ["DSPY_CACHEDIR"] = tempfile.mkdtemp(prefix="sigadapt-dspy-cache-")
