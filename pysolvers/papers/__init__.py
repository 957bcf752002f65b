"""Published results to compare with."""

from .reference import (
    PrimaryVortex,
    botella_peyret_profiles,
    ghia_lid_vorticity,
    ghia_profiles,
    ghia_reynolds_numbers,
    primary_vortices,
)

__all__ = [
    "PrimaryVortex",
    "botella_peyret_profiles",
    "ghia_lid_vorticity",
    "ghia_profiles",
    "ghia_reynolds_numbers",
    "primary_vortices",
]
