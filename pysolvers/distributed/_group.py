"""Groups of processes that call the same functions together, each with its part of the arrays.

A call is collective: every rank of the group calls the same function with the same options. The
ranks first exchange what they are about to do (`Group.agreement`), so that a rank with another
shape or option, or one that raised an error, raises on all ranks before any array is exchanged.
All waiting is bounded by the timeout of the group.
"""

import atexit
import pickle
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from .._checks import require, require_number, short
from .._errors import BackendError, DistributedError
from .._runtime.backends import require as require_backend
from .._runtime.interop import locate
from ._launch import launched
from ._mpi import MpiTransport, agree
from ._torch import TorchTransport, is_process_group

Array = NDArray[Any]

_OF_MPI = ("Dup", "Irecv", "Isend", "rank", "size")

#: By what numbers on devices can travel.
LINKS: Final = ("peers", "nccl", "host")

#: The operation whose calls need no messages, and need not wait.
EARLIER: Final = "solve_tridiagonal"

# Seconds after which a rank that ended without an error counts as missing.
_ENDED_AFTER = 0.5

# Octets that `Group.objects` sends of each object, its size included; a larger one needs a second
# message.
_HEAD = 1024
_LENGTH = 8


class Transport(Protocol):
    """How messages get from rank to rank; see `MpiTransport`."""

    name: str
    rank: int
    size: int

    def exchange(
        self, sends: Mapping[int, Array], receives: Mapping[int, Array], timeout: float, tag: int
    ) -> tuple[tuple[int, ...], str]:
        """Exchange contiguous host arrays; return the ranks that are missing, and a reason."""

    def fault(self) -> tuple[int, str] | None:
        """Return a rank that ended by an error, and the error, if one is known."""

    def ended(self) -> tuple[int, str] | None:
        """Return a rank that ended without an error, and this reason, if one is known."""

    def close(self) -> None:
        """Free what the transport made; all ranks do."""

    def abandon(self) -> None:
        """End all processes after a rank is lost."""


class Group:
    """Processes that solve together, each with its part of the arrays.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm or torch.distributed.ProcessGroup, optional
        An intracommunicator, also a part of another one, or a process group with a backend for
        tensors in host memory, for example ``torch.distributed.group.WORLD``. By default
        ``MPI.COMM_WORLD`` if mpi4py and an MPI library are installed, otherwise this process alone.
    timeout : float, default: 60
        Seconds that a rank waits for another one in a call. Then it raises `DistributedError`;
        the group cannot be used after that, and when the process exits, it ends all processes of
        the MPI job.
    links : sequence of {'peers', 'nccl', 'host'}, default: ('peers', 'nccl', 'host')
        By what the ranks may exchange numbers that are on devices: between the devices of one host,
        by NCCL, or through the memory of the host. The first one that is possible on all ranks is
        taken. The same on all ranks. Numbers of cut lines travel between devices in
        `solve_tridiagonal`, if a block of the device can hold the rows of a rank, in
        `solve_block_tridiagonal` and in `solve_pentadiagonal`, and otherwise through the memory of
        the host, whatever the links are.

    Attributes
    ----------
    rank : int
        Number of this process, 0 to ``size - 1``.
    size : int
        Number of processes.
    transport : str
        ``"mpi"``, ``"torch"``, or ``"none"`` for one process.
    timeout : float
        The argument `timeout`.
    links : tuple of str
        The argument `links`.

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type, or is out of its range.
    BackendError
        If an MPI launcher started several processes and mpi4py is not installed.

    Notes
    -----
    The constructor is collective, and so are all calls with ``group=``: all ranks make the same
    calls in the same order. Errors of one rank raise on all ranks: the rank itself raises its own
    error, the others raise `DistributedError` with its number and the reason.

    A group of MPI has a communicator of its own, a copy of `comm`. Only `close` frees this copy,
    also if the group is deleted before: freeing is collective, and ranks collect garbage at
    different times. An MPI library has about 2000 communicators. ``with Group() as group:`` closes
    the group at the end of the block, unless an error leaves the block.

    Examples
    --------
    A script for ``mpirun -n 4 python script.py``:

    >>> import numpy as np
    >>> from pysolvers import solve_tridiagonal
    >>> from pysolvers.distributed import Group, Slab
    >>> group, split = Group(), Slab(axis=-1)
    >>> mine = split.part(1000, group.rank, group.size)
    >>> rhs = np.ones((8, 1000))[:, mine]
    >>> x = solve_tridiagonal(-1.0, 4.0, -1.0, rhs, group=group, split=split)
    >>> x.shape == rhs.shape
    True
    """

    def __init__(
        self, comm: Any = None, *, timeout: float = 60.0, links: Sequence[str] = LINKS
    ) -> None:
        require_number("timeout", timeout)
        require(timeout > 0, "timeout must be positive", timeout)
        self.timeout = float(timeout)
        self.links = _checked_links(links)
        self._transport = self._transport_of(comm)
        self._closed = False
        #: Why the group cannot be used any more; empty if it can.
        self._lost = ""
        #: What collective calls keep for the next ones, by a name of their own.
        self.kept: dict[str, dict[Any, Any]] = {}
        #: Called before messages to all ranks, so that kernels of other ranks do not wait for one
        #: of this rank; see _devices.py.
        self.leaving: Callable[[], None] | None = None
        #: Returns the error of an earlier call that did not wait, or None; set by such a call.
        self.unchecked: Callable[[], DistributedError | None] | None = None
        #: Whether the mailboxes between the devices are not used any more.
        self.is_broken = False
        #: Why a link between devices could not be used, the last time it was tried.
        self.reasons: dict[str, str] = {}
        self.rank: int = 0 if self._transport is None else self._transport.rank
        self.size: int = 1 if self._transport is None else self._transport.size
        self.transport = "none" if self._transport is None else self._transport.name
        hosts = self.allgather("Group", np.array(crc32(host_name().encode())))
        #: Number of ranks of this host before this one.
        self.local_rank = int((hosts[: self.rank] == hosts[self.rank]).sum())

    def _transport_of(self, comm: Any) -> Transport | None:
        """Return what carries messages; None for one process."""
        if comm is None:
            comm = _world()
        if is_process_group(comm):
            return TorchTransport(comm) if comm.size() > 1 else None
        if comm is None:
            return None
        if not all(hasattr(comm, name) for name in _OF_MPI):
            raise TypeError(
                "comm must be a communicator of mpi4py, a process group of torch.distributed or "
                f"None, got {type(comm).__name__}"
            )
        return MpiTransport(comm) if comm.size > 1 else None

    def close(self) -> None:
        """Free the communicator of the group; afterwards the group cannot be used.

        Collective, as all calls with the group. A second call has no effect. After a lost rank
        nothing is freed.

        Raises
        ------
        DistributedError
            If a rank does not take part within the timeout.
        """
        if self._closed or self._lost or self._transport is None:
            self._closed = True
            return
        with self._barrier("Group.close"):
            pass
        self._closed = True
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "a Group belongs to its process and cannot be pickled or copied, and neither can a "
            "solver with group=: write its state with save(), or create it again"
        )

    def __repr__(self) -> str:
        return f"<Group rank {self.rank} of {self.size}, transport {self.transport}>"

    def exchange(
        self,
        operation: str,
        sends: Mapping[int, Array],
        receives: Mapping[int, Array],
        kind: str = "arrays",
    ) -> None:
        """Send contiguous arrays to ranks, and receive into contiguous arrays.

        Messages of another operation, or of another `kind`, are not taken for these.

        Raises
        ------
        DistributedError
            If a rank does not take part within the timeout.
        """
        if self._closed:
            raise ValueError(f"{operation}: the group is closed; make another with Group()")
        if self.rank in sends:
            receives[self.rank].reshape(-1)[...] = sends[self.rank].reshape(-1)
        if self._transport is None:
            return
        if self._lost:
            raise DistributedError(f"{operation}: the group cannot be used after {self._lost}", ())
        sends, receives = (
            {rank: array for rank, array in arrays.items() if rank != self.rank}
            for arrays in (sends, receives)
        )
        try:
            late, reason = self._transport.exchange(
                sends, receives, self.timeout, _tag(operation, kind)
            )
        except BaseException:  # an interrupt: other ranks may have, or not have, the messages
            self._lose(f"{operation}: rank {self.rank} of {self.size} was interrupted")
            raise
        if late:
            self._lose(
                f"{operation}: rank {self.rank} of {self.size} gets no message from "
                f"{_named(late)}: {reason or f'waited {self.timeout:g} s'}"
            )
            raise DistributedError(self._lost, late)

    def forget_calls(self) -> None:
        """Compare the ranks in the next call of each kind: one of them made another call."""
        kinds = self.kept.get("calls", {}).get("kinds")
        if kinds is not None:
            kinds.forget()
        self.is_broken = self.is_broken or bool(self.kept.get("links"))

    def _leave(self) -> None:
        """Let no kernel of another rank wait for one of this rank, unless its device has failed."""
        if self.leaving is not None:
            try:
                self.leaving()
            except BackendError:
                self.leaving = None

    def failure_of_earlier(self) -> DistributedError | None:
        """Return the error of an earlier call that did not wait, once."""
        unchecked, self.unchecked = self.unchecked, None
        return None if unchecked is None else unchecked()

    def _fault(self) -> tuple[int, str] | None:
        """Return a rank that ended by an error, and the error, if one is known."""
        return None if self._transport is None or self._closed else self._transport.fault()

    def _missing(self, waited: float) -> tuple[int, str] | None:
        """Return a rank that ended, and the reason, for a call that has waited some seconds."""
        fault = self._fault()
        if fault is None and self._transport is not None and waited > _ENDED_AFTER:
            return self._transport.ended()
        return fault

    def _lose(self, text: str) -> None:
        """Refuse further calls, whose messages would not match those of other ranks."""
        self._lost = text
        assert self._transport is not None
        atexit.register(self._transport.abandon)

    def allgather(self, operation: str, mine: Array, kind: str = "arrays") -> Array:
        """Return the arrays of all ranks along a new first axis; collective.

        Parameters
        ----------
        operation : str
            Name of the call for messages, the same on all ranks.
        mine : ndarray
            The array of this rank, of the same shape and dtype on all ranks.
        kind : str, default: 'arrays'
            Kind of the messages: those of another kind are not taken for these.

        Returns
        -------
        all : ndarray, shape (size, ...)
            The arrays, in the order of the ranks.

        Raises
        ------
        DistributedError
            If a rank does not take part within the timeout.
        """
        self._leave()
        mine = np.ascontiguousarray(mine)
        found = np.empty((self.size, *mine.shape), mine.dtype)
        ranks = range(self.size)
        receives = {rank: found[rank] for rank in ranks}
        self.exchange(operation, dict.fromkeys(ranks, mine), receives, kind)
        return found

    def gather(self, operation: str, mine: Array, axis: int) -> Array | None:
        """Return the arrays of all ranks joined along an axis; collective.

        Parameters
        ----------
        operation : str
            Name of the call for messages, the same on all ranks.
        mine : ndarray
            The array of this rank. Lengths along `axis` can differ.
        axis : int
            The axis.

        Returns
        -------
        whole : ndarray or None
            On rank 0 the joined array, None on the other ranks.

        Raises
        ------
        DistributedError
            If a rank does not take part within the timeout.
        """
        sizes = self.allgather(operation, np.array(mine.shape[axis]))
        if self.rank > 0:
            self.exchange(operation, {0: np.ascontiguousarray(mine)}, {})
            return None
        before, after = mine.shape[:axis], mine.shape[axis + 1 :]
        parts = {
            rank: np.empty((*before, size, *after), mine.dtype)
            for rank, size in enumerate(sizes.ravel().tolist())
            if rank > 0
        }
        self.exchange(operation, {}, parts)
        return np.concatenate([mine, *parts.values()], axis)

    def objects(self, operation: str, mine: Any) -> list[Any]:
        """Return the objects of all ranks; collective.

        Parameters
        ----------
        operation : str
            Name of the call for messages, the same on all ranks.
        mine : object
            The object of this rank, which is pickled.

        Returns
        -------
        all : list
            The objects, in the order of the ranks.

        Raises
        ------
        DistributedError
            If a rank does not take part within the timeout.

        Examples
        --------
        >>> from pysolvers.distributed import Group
        >>> Group().objects("report", "done")
        ['done']
        """
        if self.size == 1:
            return [mine]
        octets = np.frombuffer(pickle.dumps(mine), np.uint8)
        head = np.zeros(_HEAD, np.uint8)
        head[:_LENGTH] = np.array([octets.size], np.int64).view(np.uint8)
        head[_LENGTH : _LENGTH + octets.size] = octets[: _HEAD - _LENGTH]
        heads = self.allgather(operation, head, "objects")
        sizes = np.ascontiguousarray(heads[:, :_LENGTH]).view(np.int64).ravel()
        rests = {
            rank: np.empty(size - (_HEAD - _LENGTH), np.uint8)
            for rank, size in enumerate(sizes.tolist())
            if size > _HEAD - _LENGTH
        }
        if rests:  # of the ranks whose objects are larger than what is always sent
            ranks = range(self.size) if self.rank in rests else ()
            self.exchange(
                operation, dict.fromkeys(ranks, octets[_HEAD - _LENGTH :]), rests, "objects"
            )
        nothing = np.empty(0, np.uint8)
        return [
            pickle.loads(np.concatenate([own[_LENGTH:], rests.get(rank, nothing)]).tobytes())
            for rank, own in enumerate(heads)
        ]

    def _agreed_numbers(self, operation: str, count: int, dtype: np.dtype) -> "AgreedNumbers":
        """Return a context in which this rank prepares numbers that all ranks need."""
        return AgreedNumbers(self, operation, count, dtype)

    def _barrier(self, operation: str) -> "AgreedNumbers":
        """Return a context with a barrier at its end; a rank that raises in it raises on all."""
        return self._agreed_numbers(operation, 0, np.dtype(np.float64))

    def agreement(self, operation: str) -> "Agreement":
        """Return a context in which this rank prepares its part of a collective call."""
        return Agreement(self, operation)


class Agreement:
    """The local part of a collective call; at its end the ranks compare what they found.

    Attributes
    ----------
    same : dict
        What must be the same on all ranks, to be set in the context.
    own : object
        What the other ranks need of this rank, to be set in the context.
    found : sequence
        After the context, `own` of all ranks.

    Raises
    ------
    DistributedError
        At the end of the context, if another rank raised an error in it, calls another
        operation, or differs in `same`.
    """

    def __init__(self, group: Group, operation: str) -> None:
        self._group, self._operation = group, operation
        self.same: dict[str, Any] = {}
        self.own: Any = None
        self.found: Sequence[Any] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._group.size == 1 or (error is not None and not isinstance(error, Exception)):
            self.found = [self.own]
            return
        if isinstance(error, DistributedError):  # all ranks have it
            return
        group, reason = self._group, None
        earlier = group.failure_of_earlier() if error is None else None
        own = error if earlier is None else earlier
        if own is not None:
            agree(own, group.rank, group.size)
            reason = f"{type(own).__name__}: {own}"
        mine = (reason, {"operation": self._operation, **self.same}, self.own)
        # The rank that made another call in place of the earlier one is in its agreement.
        operation = self._operation if earlier is None else EARLIER
        reasons, facts, self.found = zip(*group.objects(operation, mine), strict=True)
        if own is not None:
            group.forget_calls()
        if earlier is not None:
            raise earlier
        if error is None:
            self._compare(reasons, facts)

    def _compare(self, reasons: Sequence[str | None], facts: Sequence[dict[str, Any]]) -> None:
        """Raise for a rank that failed, or that differs from rank 0."""
        failed = tuple(rank for rank, reason in enumerate(reasons) if reason is not None)
        if failed:
            self._group.forget_calls()
            text = f"{self._operation}: {_named(failed)} raised {reasons[failed[0]]}"
            raise DistributedError(text, failed)
        for name in facts[0]:
            others = tuple(r for r, own in enumerate(facts) if own.get(name) != facts[0][name])
            if others:
                self._group.forget_calls()
                raise DistributedError(
                    f"{self._operation}: {name} must be the same on all ranks, but rank 0 has "
                    f"{short(facts[0][name])} and rank {others[0]} has "
                    f"{short(facts[others[0]].get(name))}",
                    others,
                )


class AgreedNumbers(Agreement):
    """The local part of a collective call that ends with numbers of this rank for all ranks.

    The numbers travel in the message that says whether the rank has any, so that the ranks compare
    nothing else.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    count : int
        How many numbers a rank has; the same on all ranks.
    dtype : dtype
        Their dtype.

    Attributes
    ----------
    mine : array, shape (count,), or None
        The numbers of this rank, to be set in the context; None if it has none.
    numbers : array, shape (ranks, count), or None
        After the context, the numbers of all ranks; None if a rank has none.

    Raises
    ------
    DistributedError
        At the end of the context, if another rank raised an error in it.
    """

    _HAS, _HAS_NONE, _FAILED = range(3)

    def __init__(self, group: Group, operation: str, count: int, dtype: np.dtype) -> None:
        super().__init__(group, operation)
        self._count, self._dtype = count, np.dtype(dtype)
        self.mine: Array | None = None
        self.numbers: Array | None = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            return
        numbers = np.zeros(self._count + 1, self._dtype)
        if error is not None:
            numbers[0] = self._FAILED
        elif self.mine is None:
            numbers[0] = self._HAS_NONE
        else:
            numbers[1:] = self.mine
        found = self._group.allgather(self._operation, numbers)
        if (found[:, 0] == self._FAILED).any():
            super().__exit__(kind, error, traceback)  # raises on the ranks without an error
        elif error is None and not (found[:, 0] == self._HAS_NONE).any():
            self.numbers = found[:, 1:]


def agreement_of(group: object, operation: str) -> AbstractContextManager[Agreement | None]:
    """Return the context of a call that is collective if `group` is a `Group`."""
    return group.agreement(operation) if isinstance(group, Group) else nullcontext()


def own_device(
    device: str | None, group: object, named: Mapping[str, Any] | None = None
) -> str | None:
    """Return the device of a rank, from the argument `device` of a collective call.

    Parameters
    ----------
    device : str or None
        As the caller gave it. For ``'cuda'`` and ``'gpu'``, which name no device, the ranks of a
        host take the devices that they see in turn.
    group : object
        As the caller gave it: other values than a `Group` leave `device` as it is.
    named : mapping, optional
        The operands. If one is on a device, ``'cuda'`` is that device.

    Returns
    -------
    str or None
        ``'cuda:N'``, or `device` where the caller chose a device, or there is one process.

    Raises
    ------
    BackendError
        If the CUDA backend is missing.
    """
    if device not in ("cuda", "gpu") or not isinstance(group, Group) or group.size == 1:
        return device
    if any(locate(value) is not None for value in (named or {}).values()):
        return device
    return f"cuda:{group.local_rank % require_backend('cuda').device_count()}"


@cache
def host_name() -> str:
    """Return a name of this host, which other hosts do not have."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return f"{platform.node()} {path.read_text() if path.exists() else ''}"


def _checked_links(links: object) -> tuple[str, ...]:
    """Return the links of a group, or raise."""
    if isinstance(links, str) or not isinstance(links, Sequence):
        raise TypeError(
            f"links must be a sequence of str, ('host',) for example, got {type(links).__name__}"
        )
    found = tuple(links)
    require(bool(found), f"links must have at least one of {', '.join(map(repr, LINKS))}", links)
    for link in found:
        require(link in LINKS, f"links must be among {', '.join(map(repr, LINKS))}", link)
    require(len(set(found)) == len(found), "links must have no name twice", links)
    return found


def _tag(operation: str, kind: str) -> int:
    """Return the tag of a message, below the smallest upper bound of tags of MPI."""
    return crc32(f"{operation}, {kind}".encode()) % 30000


def _named(ranks: Sequence[int]) -> str:
    """Return ranks as text: 'rank 2' or 'ranks 1, 2 and 5'."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def _world() -> Any:
    """Return the communicator of all processes, or None without mpi4py."""
    try:
        return import_module("mpi4py.MPI").COMM_WORLD
    except (ImportError, RuntimeError) as error:  # no mpi4py, or mpi4py finds no MPI library
        size, _ = launched()
        if size > 1:
            raise BackendError(
                f"an MPI launcher started {size} processes, but mpi4py cannot be used ({error}): "
                "install pysolvers with its extra 'mpi'"
            ) from error
    return None


class OneProcess(Group):
    """A group of one process, also in a job of MPI; a solver with it can be pickled and copied."""

    def _transport_of(self, comm: Any) -> None:
        del comm

    def allgather(self, operation: str, mine: Array, kind: str = "arrays") -> Array:
        del operation, kind
        return np.array(mine)[None]

    def __reduce__(self) -> tuple[Any, ...]:
        return OneProcess, ()


#: The group of solvers that get none.
ONE_PROCESS: Final = OneProcess()
