"""ragas' settings of a run: separate, because `ragas.run_config` is imported."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_UNLIMITED = 1000


@dataclass
class RunConfig:
    """The settings of the calls to a model: time limit, attempts, concurrency."""

    timeout: float | None = 180
    """Seconds for one call; None for no limit."""
    max_retries: int | None = 10
    """Attempts per call, the first included; None for karat's own number."""
    max_wait: float = 60
    """No effect: karat waits at most 30 seconds between two attempts."""
    max_workers: int = 16
    """Calls at once; -1 for no limit, which is a thousand."""
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
        retries = {} if self.max_retries is None else {"retries": max(self.max_retries - 1, 0)}
        return {
            "timeout": inf if self.timeout is None else self.timeout,
            "concurrency": _UNLIMITED if self.max_workers == -1 else self.max_workers,
            **retries,
        }
