"""Which CPUs share a last-level cache, a NUMA node and a socket: what a picture of many CPUs is ordered by.

A few files per cache are read, not those of every CPU: it is done before the first frame. Layout: Linux,
Documentation/ABI/stable/sysfs-devices-system-cpu and -node.
"""

from __future__ import annotations

from pathlib import Path

from pmutop.kernelfiles import cpu_list, names, number, text
from pmutop.topology import CPUS, read_nodes


def domains(root: Path = Path("/")) -> list[dict]:
    """[{"socket", "node", "cpus"}] of the online CPUs, a record per last-level cache within a node; -1 where the kernel
    does not say. CPUs without a word of their caches go by node."""
    left = dict.fromkeys(cpu_list(text(root / CPUS / "online")))
    node_of = {cpu: node for node, cpus in read_nodes(root).items() for cpu in cpus}
    found = []
    while left:
        cpu = next(iter(left))
        sharing = shared_cache(root / CPUS / f"cpu{cpu}")
        node, socket = (
            node_of.get(cpu, -1),
            number(root / CPUS / f"cpu{cpu}" / "topology/physical_package_id"),
        )
        # Several nodes may share one cache (sub-NUMA clusters), and where it is not known all that is left of the node is one.
        cpus = [one for one in sharing or left if one in left and node_of.get(one, -1) == node]
        found.append({"socket": socket, "node": node, "cpus": cpus})
        for one in cpus:
            del left[one]
    return sorted(found, key=lambda domain: (domain["socket"], domain["node"], domain["cpus"]))


def shared_cache(cpu: Path) -> tuple[int, ...]:
    """The CPUs behind the biggest cache of one CPU, from level 3 on (a private L2 is no domain); () where not told."""
    indexes = [cpu / "cache" / name for name in names(cpu / "cache") if name.startswith("index")]
    levels = [(number(index / "level"), index) for index in indexes]
    level, index = max(levels, default=(0, cpu))
    sharing = cpu_list(text(index / "shared_cpu_list"))
    return sharing if level >= 3 or len(sharing) > 1 else ()
