"""Late results of actors that were given up."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Late:
    """Calls of actors that were given up. Their late results are second deliveries, since other workers play these
    slabs."""

    ray: Any
    refs: list[Any] = field(default_factory=list)
    repeated: int = 0

    def look(self) -> None:
        if not self.refs:
            return
        done, self.refs = self.ray.wait(self.refs, num_returns=len(self.refs), timeout=0)
        for ref in done:
            with suppress(self.ray.exceptions.RayError):
                self.ray.get(ref)
                self.repeated += 1
