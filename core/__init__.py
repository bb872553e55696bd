"""Leadline's engine. It knows no benchmark, no provider and no model name.

Importing this package is cheap and does no I/O: whatever is heavy (hydra, litellm, datasets,
numpy) is imported by the one module that uses it, when it is used.
"""

from typing import Final

__version__: Final = "0.1.0"
