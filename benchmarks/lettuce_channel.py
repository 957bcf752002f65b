"""The channel of SquareCylinder with the lattice Boltzmann solver lettuce; see `cylinder_peer`."""

import time
from typing import Any

import lettuce
import numpy as np
import torch

from pysolvers.flow.cylinder._result import strouhal_of

from .cylinder_peer import HEIGHT, LENGTH, RE

PROBE = 4  # behind the centre of the cylinder, in its sides
START = (2.0, 0.4, 0.2)  # perturbation: x and y from the centre, square of the width
SAMPLES = 40  # of drag and v in the time in which the flow passes the side


class Channel(lettuce.Obstacle):
    """The channel with `side` cells along a side of the cylinder, an even number."""

    def __init__(self, context: lettuce.Context, side: int, mach: float) -> None:
        self.side = side
        self.solid = torch.zeros(LENGTH * side, HEIGHT * side + 2, dtype=torch.bool)
        first = LENGTH * side // 4 - side // 2, (HEIGHT - 1) * side // 2 + 1
        self.cylinder = np.s_[first[0] : first[0] + side, first[1] : first[1] + side]
        self.solid[:, 0] = self.solid[:, -1] = self.solid[self.cylinder] = True
        super().__init__(context, list(self.solid.shape), RE, mach, LENGTH)
        inlet = torch.zeros_like(self.solid)
        inlet[0] = True
        u = self.profile()
        self._walls = [
            lettuce.EquilibriumBoundaryPU(
                context, self, inlet.to(context.device), torch.stack([u, 0 * u])[:, None, :]
            ),
            lettuce.EquilibriumOutletP([1, 0], self),
            lettuce.BounceBackBoundary(self.solid.to(context.device)),
        ]

    @property
    def post_boundaries(self) -> list[Any]:
        """Inflow, outlet and walls."""
        return self._walls

    def places(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return x and y of the nodes, in sides; the walls are at y = 4 and y = -4."""
        x, y = (torch.arange(n, dtype=torch.float64) for n in self.solid.shape)
        return (x + 0.5) / self.side, (y - 0.5) / self.side - HEIGHT / 2

    def profile(self) -> torch.Tensor:
        """Return u of the inflow, shape (ny,)."""
        return (1 - (self.places()[1] / (HEIGHT / 2)) ** 2).clamp(min=0)

    def initial_pu(self) -> tuple[Any, torch.Tensor]:
        """Return the inflow everywhere, and a perturbation of v behind the cylinder."""
        x, y = self.places()
        square = (x[:, None] - LENGTH / 4 - START[0]) ** 2 + (y - START[1]) ** 2
        v = 0.2 * torch.exp(-square / START[2])
        u = self.profile().expand_as(v)
        return torch.zeros_like(v)[None], torch.stack([u, v]) * ~self.solid


def lattice(side: int, until: float, mach: float, device: str, dtype: str) -> dict[str, Any]:
    """Return time, Strouhal number and drag of lettuce."""
    context = lettuce.Context(torch.device(device), getattr(torch, dtype), use_native=False)
    flow = Channel(context, side, mach)
    run = lettuce.Simulation(flow, lettuce.BGKCollision(flow.units.relaxation_parameter_lu), [])
    speed = flow.units.characteristic_velocity_lu
    every = max(1, round(side / speed / SAMPLES))
    count = round(until * side / speed / every)
    x, y = flow.places()
    probe = (
        int(torch.argmin((x - LENGTH / 4 - PROBE).abs())),
        int(torch.argmin(y.abs())),
    )
    found = torch.zeros(count, 2, dtype=torch.float64, device=context.device)
    run(1)
    synchronize(device)
    start = time.perf_counter()
    for k in range(count):
        run(every)
        momentum = flow.j()
        found[k, 0] = 2 * momentum[0][flow.cylinder].sum()  # populations that turn round
        found[k, 1] = momentum[1][probe]
    values = found.cpu().numpy()
    seconds = time.perf_counter() - start
    times = (1 + every * np.arange(1, count + 1)) * speed / side
    late = times > until / 2
    return {
        "solver": "lettuce",
        "cells": side,
        "steps": every * count,
        "seconds": seconds,
        "strouhal": strouhal_of(times[late], values[late, 1]).value,
        "drag": float(values[late, 0].mean() * 2 / (speed**2 * side)),
    }


def synchronize(device: str) -> None:
    """Wait for the device."""
    if device != "cpu":
        torch.cuda.synchronize()
