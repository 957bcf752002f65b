"""Published results; in one module a paper, solvers with its options, and its experiments."""

from .._published import (
    PrimaryVortex,
    botella_peyret_profiles,
    breuer_drag,
    breuer_recirculation_length,
    ghia_lid_vorticity,
    ghia_profiles,
    ghia_reynolds_numbers,
    primary_vortices,
    published_profiles,
)

__all__ = [
    "PrimaryVortex",
    "botella_peyret_profiles",
    "breuer_drag",
    "breuer_recirculation_length",
    "ghia_lid_vorticity",
    "ghia_profiles",
    "ghia_reynolds_numbers",
    "primary_vortices",
    "published_profiles",
]
