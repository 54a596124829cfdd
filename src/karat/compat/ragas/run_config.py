"""ragas' settings of a run: separate, because `ragas.run_config` is imported."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass
class RunConfig:
    """The settings of the calls to a model: time limit, attempts, concurrency."""

    timeout: float = 180
    """Seconds for one call."""
    max_retries: int = 10
    """Attempts per call, the first included."""
    max_wait: float = 60
    """No effect: karat waits at most 30 seconds between two attempts."""
    max_workers: int = 16
    """Calls at once."""
    exception_types: Any = (Exception,)
    """No effect: karat retries what may succeed, such as 429, and never what cannot, such as a wrong key."""
    log_tenacity: bool = False
    """No effect: calls are logged by the logger `karat.llm`."""
    seed: int = 42
    """The seed of `rng`; no metric of retrieval draws random numbers."""

    @cached_property
    def rng(self) -> np.random.Generator:
        """A generator of random numbers."""
        import numpy as np

        return np.random.default_rng(self.seed)

    def settings(self) -> dict[str, Any]:
        """The settings of karat's judges that correspond."""
        return {"timeout": self.timeout, "retries": max(self.max_retries - 1, 0), "concurrency": self.max_workers}
