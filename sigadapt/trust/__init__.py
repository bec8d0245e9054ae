"""Trust: tools that others may change, and conversations that a client keeps."""

from sigadapt.trust.pins import Drift, drift_of, pinned, pins_of
from sigadapt.trust.signing import is_signed, sign
from sigadapt.trust.untrusted import untrusted_history

__all__ = ["Drift", "drift_of", "is_signed", "pinned", "pins_of", "sign", "untrusted_history"]
