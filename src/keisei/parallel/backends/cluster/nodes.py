"""The nodes of a cluster, and what they have room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keisei.errors import ClusterError


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of the cluster, or one part of it that Ray was given."""

    node_id: str
    address: str
    resources: Mapping[str, float]
    """All that it has, by name: CPU, GPU, memory in bytes and others."""

    def places(self, demand: Mapping[str, float]) -> int:
        """Computes how many workers fit on this node."""
        return min(int(self.resources.get(name, 0.0) / amount) for name, amount in demand.items())

    @property
    def capacity(self) -> str:
        return ", ".join(f"{self.resources.get(name, 0.0):g} {name}" for name in ("CPU", "GPU"))

    def __str__(self) -> str:
        return f"{self.address} ({self.capacity})"


def alive_nodes(ray: Any) -> list[Node]:
    return [
        Node(node["NodeID"], node["NodeManagerAddress"], dict(node["Resources"]))
        for node in ray.nodes()
        if node["Alive"]
    ]


def demand_of(cpus: float, gpus: float) -> dict[str, float]:
    """Computes what one worker reserves."""
    return {"CPU": cpus} | ({"GPU": gpus} if gpus else {})


def in_words(demand: Mapping[str, float]) -> str:
    return " and ".join(f"{amount:g} {name}" for name, amount in demand.items())


def places(nodes: Sequence[Node], demand: Mapping[str, float]) -> int:
    return sum(node.places(demand) for node in nodes)


def demand_places(nodes: Sequence[Node], demand: Mapping[str, float]) -> None:
    """Raises an error if no node could ever run a worker."""
    if not places(nodes, demand):
        raise ClusterError(
            f"a worker takes {in_words(demand)} (parallel.worker_cpus, parallel.worker_gpus), and no node of the "
            f"cluster has that: {', '.join(map(str, nodes)) or 'there is none'}; ask for less, or add such a node"
        )
