"""Messages between ranks through a process group of torch.distributed."""

import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TAG = 0x7073  # so that messages of other users of the group are not mixed up with these

Array = NDArray[Any]


def is_process_group(comm: object) -> bool:
    """Whether an object is a process group of torch.distributed."""
    module = sys.modules.get("torch.distributed")
    kind: Any = getattr(module, "ProcessGroup", None)
    return kind is not None and isinstance(comm, kind)


class TorchTransport:
    """Messages of host arrays between all pairs of ranks of a process group.

    Parameters
    ----------
    comm : torch.distributed.ProcessGroup
        A group with a backend for tensors in host memory, Gloo for example.
    """

    name = "torch"

    def __init__(self, comm: Any) -> None:
        self._torch, self._comm = sys.modules["torch"], comm
        self._ranks = self._torch.distributed.get_process_group_ranks(comm)
        self.rank: int = comm.rank()
        self.size: int = comm.size()
        backends = self._torch.distributed.get_backend_config(comm)
        if "cpu" not in backends:
            raise ValueError(
                "comm must have a backend for tensors in host memory, for example "
                f"init_process_group('cpu:gloo,cuda:nccl'); got {backends}"
            )

    def exchange(
        self, sends: Mapping[int, Array], receives: Mapping[int, Array], timeout: float, tag: int
    ) -> tuple[tuple[int, ...], str]:
        """Send and receive as `MpiTransport.exchange` does."""
        distributed = self._torch.distributed
        end = time.monotonic() + timeout
        late, reason = set(), ""
        pairs = []
        for begin, arrays in ((distributed.irecv, receives), (distributed.isend, sends)):
            for rank, array in arrays.items():
                if array.size:
                    own = array if array.flags.writeable else array.copy()  # as torch requires
                    octets = self._torch.from_numpy(own.reshape(-1).view(np.uint8))
                    there = self._ranks[rank]
                    pairs.append((rank, begin(octets, there, group=self._comm, tag=_TAG + tag)))
        for rank, work in pairs:
            try:
                work.wait(timedelta(seconds=max(end - time.monotonic(), 1e-3)))
            except RuntimeError as error:
                late.add(rank)
                reason = str(error)
        return tuple(sorted(late)), reason

    def fault(self) -> None:
        """Return no rank: those that end by an error are not known."""

    def ended(self) -> None:
        """Return that no rank is known to have ended."""

    def close(self) -> None:
        """Leave the process group, which the caller made, as it is."""

    def abandon(self) -> None:
        """Leave the other processes to their launcher."""
