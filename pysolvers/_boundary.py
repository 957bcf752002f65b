"""Boundary conditions: `Dirichlet`, `Neumann` and `Robin`, and the sides that they apply to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._checks import require, require_finite, short

PERIODIC = "periodic"
OUTFLOW = "outflow"  # nothing diffuses through the side

_ENDS = "-+"


@dataclass(frozen=True, slots=True, eq=False)
class Dirichlet:
    """The value of the solution is given on a side.

    Parameters
    ----------
    value : number, array or callable, default: 0
        Value of the solution. The docstring of each solver states the shape of arrays and the
        arguments of functions.

    Examples
    --------
    >>> from pysolvers import Dirichlet, HeatADI
    >>> sides = {"x-": 0.0, "x+": Dirichlet(1.0)}
    >>> rod = HeatADI((5,), 0.25, dt=0.1, boundary=sides).solve_steady()
    >>> print(rod.u.round(3))
    [0.   0.25 0.5  0.75 1.  ]
    """

    value: Any = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Neumann:
    r"""The diffusive flux into the domain is given: :math:`k\,\partial u/\partial n`.

    n is the outward normal, and k the conductivity or diffusion coefficient of the solver, 1 for
    the Poisson equation. A positive flux heats the domain.

    Parameters
    ----------
    flux : number, array or callable, default: 0
        The flux. The docstring of each solver states the shape of arrays and the arguments of
        functions.

    Examples
    --------
    >>> from pysolvers import HeatADI, Neumann
    >>> sides = {"x-": 0.0, "x+": Neumann(2.0)}
    >>> rod = HeatADI((5,), 0.25, dt=0.1, boundary=sides).solve_steady()
    >>> print(rod.u.round(3))
    [0.  0.5 1.  1.5 2. ]
    """

    flux: Any = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Robin:
    r"""Exchange with the surroundings: :math:`k\,\partial T/\partial n = h (T_\infty - T)`.

    Parameters
    ----------
    coefficient : float
        The coefficient h, at least 0.
    ambient : number, array or callable, default: 0
        Ambient value :math:`T_\infty`. The docstring of each solver states the shape of arrays
        and the arguments of functions.

    Examples
    --------
    >>> from pysolvers import HeatADI, Robin
    >>> sides = {"x-": 0.0, "x+": Robin(1.0, ambient=1.0)}
    >>> rod = HeatADI((5,), 0.25, dt=0.1, boundary=sides).solve_steady()
    >>> print(rod.u.round(3))
    [0.    0.125 0.25  0.375 0.5  ]
    """

    coefficient: float
    ambient: Any = 0.0


Boundary = Dirichlet | Neumann | Robin


def parts_of(name: str, condition: Any) -> tuple[str, float, Any]:
    """Return the kind of a condition, ``'value'`` or ``'flux'``, its coefficient and its data."""
    if isinstance(condition, Dirichlet):
        return "value", 0.0, condition.value
    if isinstance(condition, Neumann):
        return "flux", 0.0, condition.flux
    require_finite("coefficient of Robin", condition.coefficient)
    require(
        condition.coefficient >= 0,
        f"boundary {name}: the coefficient must be at least 0",
        condition.coefficient,
    )
    return "flux", float(condition.coefficient), condition.ambient


_KINDS = (Dirichlet, Neumann, Robin)  # torch.compile of torch 2.7 does not trace unions
# Other names of sides of a plane, y upwards, for messages.
_WORDS = {
    **{"left": "x-", "right": "x+", "bottom": "y-", "top": "y+"},
    **{"west": "x-", "east": "x+", "south": "y-", "north": "y+"},
}
_EXAMPLES = {Dirichlet: "Dirichlet(0.0)", Neumann: "Neumann(0.0)", Robin: "Robin(1.0, 0.0)"}


def sides_of(boundary: Any, axes: str, *, complete: bool = True) -> dict[str, Any]:
    """Return the condition of each side, by ``"x-"``, ``"x+"``, ``"y-"``, ...

    Parameters
    ----------
    boundary : condition or mapping
        One condition for all sides, or a mapping with the keys of sides or axes.
    axes : str
        Names of the axes.
    complete : bool, default: True
        Whether each side must be given.

    Raises
    ------
    TypeError
        If a condition is a class instead of an instance.
    ValueError
        If a key is unknown, or a side is given twice or not at all.
    """
    names = [axis + end for axis in axes for end in _ENDS]
    for given in boundary.values() if isinstance(boundary, Mapping) else [boundary]:
        for kind in _KINDS:
            if given is kind:
                raise TypeError(
                    f"boundary: a condition must be an instance, for example {_EXAMPLES[kind]}, "
                    f"got the class {kind.__name__}"
                )
    if not isinstance(boundary, Mapping):
        return dict.fromkeys(names, boundary)
    unknown = [key for key in boundary if key not in names and key not in list(axes)]
    words = _WORDS if len(axes) < 3 else {}
    known = [f"{key} = {words[key]}" for key in unknown if words.get(key) in names]
    require(
        not unknown,
        f"boundary: the sides are {', '.join(names)}, and {', '.join(axes)} for both sides of an "
        f"axis{''.join(f'; {text}' for text in known)}",
        unknown,
    )
    twice = [name for name in names if name in boundary and name[0] in boundary]
    if twice:
        raise ValueError(
            "boundary: each side must be given once, by its own key or by that of its axis; "
            f"{', '.join(twice)} {'are' if len(twice) > 1 else 'is'} given by both"
        )
    found = {
        name: boundary[name] if name in boundary else boundary[name[0]]
        for name in names
        if name in boundary or name[0] in boundary
    }
    missing = [name for name in names if name not in found]
    if complete and missing:
        raise ValueError(
            "boundary: each side must be given, for example {'x': 0.0, 'y': Neumann()}; "
            f"{', '.join(missing)} {'are' if len(missing) > 1 else 'is'} missing"
        )
    return found


def condition_of(name: str, given: Any, kinds: str = "Dirichlet, Neumann, Robin, periodic") -> Any:
    """Return a condition; a number, an array or a function is a Dirichlet value.

    Parameters
    ----------
    name : str
        Name of the side, for messages.
    given : object
        The condition.
    kinds : str
        Conditions that the solver offers.

    Raises
    ------
    TypeError, ValueError
        If it is not a condition, or one that the solver does not offer.
    """
    if isinstance(given, str):
        require(
            given == PERIODIC and PERIODIC in kinds,
            f"boundary {name}: the condition must be one of {kinds}, or a value",
            given,
        )
        return given
    if isinstance(given, _KINDS):
        if type(given).__name__ not in kinds:
            raise TypeError(
                f"boundary {name}: the condition must be one of {kinds}, or a value, "
                f"got {short(given)}"
            )
        return given
    if given is None or isinstance(given, Mapping):
        raise TypeError(
            f"boundary {name}: the condition must be one of {kinds}, or a value, got {short(given)}"
        )
    return Dirichlet(given)


def boundary_by_side(
    boundary: Any,
    axes: str,
    kinds: str = "Dirichlet, Neumann, Robin, periodic",
    named: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Return what each side prescribes, ``"x-"``, ``"x+"``, ``"y-"``, ...

    Parameters
    ----------
    boundary : condition or mapping
        For all sides, or by side or axis.
    axes : str
        Names of the axes.
    kinds : str
        Conditions that the solver offers.
    named : tuple of str
        Further conditions, of one side, that are given by these texts.

    Raises
    ------
    TypeError, ValueError
        If a side is missing, unknown, or periodic without the other one.
    """
    kinds = ", ".join([kinds, *named])
    given = sides_of(boundary, axes)
    found = {
        name: one if isinstance(one, str) and one in named else condition_of(name, one, kinds)
        for name, one in given.items()
    }
    for axis in axes:
        pair = [found[axis + end] == PERIODIC for end in _ENDS]
        require(
            pair[0] == pair[1],
            f"boundary: both sides along {axis} must be periodic, or none of them",
            tuple(found[axis + end] for end in _ENDS),
        )
    return found
