"""Published tables and timings of flows; the data files name their sources.

In the cavity lengths are in units of the side, velocities in those of the lid speed; the lid moves
along +x at y = 1.
"""

import csv
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class PrimaryVortex:
    """Published centre of the main vortex.

    Parameters
    ----------
    source : str
        Authors and year.
    x, y : float
        Coordinates.
    psi, omega : float or None
        Streamfunction and vorticity at the centre, if they were published.

    Examples
    --------
    >>> from pysolvers.papers import primary_vortices
    >>> vortex = primary_vortices(1000)[0]
    >>> vortex.x, vortex.y
    (0.5313, 0.5625)
    """

    source: str
    x: float
    y: float
    psi: float | None = None
    omega: float | None = None


_GHIA, _BOTELLA = "Ghia et al. 1982", "Botella and Peyret 1998"

_VORTICES = {
    100: (PrimaryVortex(_GHIA, 0.6172, 0.7344),),
    400: (PrimaryVortex(_GHIA, 0.5547, 0.6055),),
    1000: (
        PrimaryVortex(_GHIA, 0.5313, 0.5625),
        PrimaryVortex(_BOTELLA, 0.5308, 0.5652, -0.1189366, -2.067753),
    ),
}


def primary_vortices(reynolds: float) -> tuple[PrimaryVortex, ...]:
    """Return the published main vortices for a Reynolds number; empty if there is none.

    Parameters
    ----------
    reynolds : float
        Lid speed times side over kinematic viscosity.

    Returns
    -------
    vortices : tuple of PrimaryVortex
        Ghia, Ghia and Shin (1982) for 100, 400 and 1000; Botella and Peyret (1998) for
        1000, whose lid moves in the opposite direction: x is mirrored.

    Examples
    --------
    >>> from pysolvers.papers import primary_vortices
    >>> [(vortex.source, vortex.psi) for vortex in primary_vortices(1000)]
    [('Ghia et al. 1982', None), ('Botella and Peyret 1998', -0.1189366)]
    """
    return _VORTICES.get(int(reynolds), ()) if reynolds == int(reynolds) else ()


def ghia_reynolds_numbers() -> tuple[int, ...]:
    """Return the Reynolds numbers of the tables of Ghia, Ghia and Shin (1982).

    Returns
    -------
    numbers : tuple of int
        In ascending order.

    Examples
    --------
    >>> from pysolvers.papers import ghia_reynolds_numbers
    >>> ghia_reynolds_numbers()
    (100, 400, 1000, 3200, 5000)
    """
    return tuple(int(name[2:]) for name in _read("ghia1982_u") if name.startswith("re"))


def ghia_profiles(reynolds: float) -> Columns:
    """Return the profiles on the centre lines by Ghia, Ghia and Shin (1982).

    Parameters
    ----------
    reynolds : float
        One of `ghia_reynolds_numbers`.

    Returns
    -------
    columns : dict of str to ndarray
        u on x = 1/2 at the coordinates ``y``, v on y = 1/2 at the coordinates ``x``; NaN for the
        one misprint.

    Raises
    ------
    ValueError
        If there is no such table.

    Examples
    --------
    >>> from pysolvers.papers import ghia_profiles
    >>> profiles = ghia_profiles(100)
    >>> sorted(profiles)
    ['u', 'v', 'x', 'y']
    """
    name = _ghia_column(reynolds)
    u, v = _read("ghia1982_u"), _read("ghia1982_v")
    return {"y": u["y"], "u": u[name], "x": v["x"], "v": v[name]}


def ghia_lid_vorticity(reynolds: float) -> Columns:
    """Return the vorticity along the lid by Ghia, Ghia and Shin (1982), without sign.

    Parameters
    ----------
    reynolds : float
        One of `ghia_reynolds_numbers`.

    Returns
    -------
    columns : dict of str to ndarray
        ``omega`` at the coordinates ``x``, in units of lid speed over side.

    Raises
    ------
    ValueError
        If there is no such table.

    Examples
    --------
    >>> from pysolvers.papers import ghia_lid_vorticity
    >>> sorted(ghia_lid_vorticity(100))
    ['omega', 'x']
    """
    table = _read("ghia1982_lid_vorticity")
    return {"x": table["x"], "omega": table[_ghia_column(reynolds)]}


def botella_peyret_profiles() -> Columns:
    """Return the spectral profiles for Re = 1000 by Botella and Peyret (1998).

    Returns
    -------
    columns : dict of str to ndarray
        u on x = 1/2 at the coordinates ``y``, v on y = 1/2 at the coordinates ``x``, in ascending
        order.

    Examples
    --------
    >>> from pysolvers.papers import botella_peyret_profiles
    >>> sorted(botella_peyret_profiles())
    ['u', 'v', 'x', 'y']
    """
    u, v = _read("botella1998_re1000_u"), _read("botella1998_re1000_v")
    rows, columns = np.argsort(u["y"]), np.argsort(v["x"])
    return {"y": u["y"][rows], "u": u["u"][rows], "x": v["x"][columns], "v": v["v"][columns]}


def published_profiles(reynolds: float) -> dict[str, Columns]:
    """Return the published profiles of the cavity for a Reynolds number; empty if there is none.

    Parameters
    ----------
    reynolds : float
        Lid speed times side over kinematic viscosity.

    Returns
    -------
    profiles : dict of str to dict
        By authors and year: as `ghia_profiles` returns and, for 1000, as
        `botella_peyret_profiles` returns.

    Examples
    --------
    >>> from pysolvers.papers import published_profiles
    >>> sorted(published_profiles(1000))
    ['Botella and Peyret 1998', 'Ghia et al. 1982']
    """
    profiles = {}
    if reynolds in ghia_reynolds_numbers():
        profiles[_GHIA] = ghia_profiles(reynolds)
    if reynolds == 1000:
        profiles[_BOTELLA] = botella_peyret_profiles()
    return profiles


def breuer_drag() -> Columns:
    """Return the drag of the square cylinder by Breuer, Bernsdorf, Zeiser and Durst (2000).

    Returns
    -------
    columns : dict of str to ndarray
        ``cd`` for the Reynolds numbers ``re`` of steady flow; read off a figure, within 3 percent.
        The blockage is 1/8 and the inflow parabolic.

    Examples
    --------
    >>> from pysolvers.papers import breuer_drag
    >>> drag = breuer_drag()
    >>> len(drag["re"]) == len(drag["cd"])
    True
    """
    return _read("breuer2000_drag")


def breuer_recirculation_length(reynolds: float) -> float:
    """Return the length Lr/D of the recirculation by Breuer et al. (2000), for 5 < Re < 60.

    Parameters
    ----------
    reynolds : float
        Largest inflow velocity times side over kinematic viscosity.

    Examples
    --------
    >>> from pysolvers.papers import breuer_recirculation_length
    >>> round(breuer_recirculation_length(40.0), 3)
    2.151
    """
    return -0.065 + 0.0554 * reynolds


def _ghia_column(reynolds: float) -> str:
    """Return the name of the column of a published Reynolds number, or raise."""
    known = ghia_reynolds_numbers()
    if reynolds not in known:
        numbers = ", ".join(map(str, known))
        raise ValueError(f"reynolds must be one of {numbers}; got {reynolds!r}")
    return f"re{int(reynolds)}"


def _read(name: str) -> Columns:
    """Return the columns of a table of the package."""
    text = (files("pysolvers") / "data" / f"{name}.csv").read_text(encoding="utf-8")
    header, *rows = csv.reader(line for line in text.splitlines() if not line.startswith("#"))
    values = np.array(rows, float)
    return {column: values[:, k].copy() for k, column in enumerate(header)}
