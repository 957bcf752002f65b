"""The timings of Souri, Akbarzadeh and Mahmoodi Darian (2020): parallel Thomas algorithm on a GPU.

Parallel Thomas approach development for solving tridiagonal systems in GPU programming, Mechanics &
Industry 21, 303: Intel i7-990X, NVIDIA GTX 580, CUDA 4.0.
"""

from dataclasses import dataclass

__all__ = ["SouriTiming", "souri_timings"]


@dataclass(frozen=True, slots=True)
class SouriTiming:
    """Published time of one tridiagonal method in 1000 iterations of the cavity.

    Parameters
    ----------
    least_speedup, largest_speedup : float
        Range of the speedups over Thomas elimination on one core, for grids of 64^2 to 1024^2.
    seconds : float or None
        Time on `nodes` x `nodes` nodes, if it was published.
    nodes : int
        Nodes along a side.
    """

    least_speedup: float
    largest_speedup: float
    seconds: float | None = None
    nodes: int = 1024


_SOURI = {
    "thomas": SouriTiming(1.0, 1.0, 331.73),
    "cr": SouriTiming(0.4, 4.4),
    "pcr": SouriTiming(0.47, 5.2),
    "pta": SouriTiming(1.7, 38.45, 8.6),
}


def souri_timings() -> dict[str, SouriTiming]:
    """Return the timings by Souri, Akbarzadeh and Mahmoodi Darian (2020).

    Returns
    -------
    timings : dict of str to SouriTiming
        ``thomas`` on one core; ``cr``, ``pcr`` and ``pta`` (one thread per line with coalesced
        access) on the GPU.
    """
    return dict(_SOURI)
