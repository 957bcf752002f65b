"""Draw the small pictures of docs/gallery.md and docs/index.md into docs/images/gallery.

python -m pysolvers bench documents gallery
"""

import json
from base64 import b64decode
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from pysolvers import (
    GCEIDD,
    CubicSpline,
    FastPoisson,
    HeatADI,
    LidDrivenCavity,
    Neumann,
    Robin,
    SquareCylinder,
    StaggeredCavity,
    factor_tridiagonal,
    solve_laplace,
    solve_tridiagonal,
)
from pysolvers._repr import counted
from pysolvers.distributed import Slab
from pysolvers.papers import gceidd2022

from ..sources import ROOT
from . import small_picture, speed_picture
from .image_file import IMAGES, write_image

FOLDER = IMAGES / "gallery"
SIZE = 4.8, 3.2
COLOURS = 128


def cpu_name(record: dict[str, Any]) -> str:
    """Return the processor of a record and its number of threads."""
    return f"{record['machine']['cpu']}, {counted(record['settings']['threads'], 'thread')}"


def speed_on_a_cpu(axes: Axes) -> None:
    record = json.loads(speed_picture.CPU.read_text())
    speed_picture.draw_lines(axes, speed_picture.cpu_lines(record), "ns")
    axes.set_title(cpu_name(record))


def speed_on_a_gpu(axes: Axes) -> None:
    record = json.loads(speed_picture.GPU.read_text())
    speed_picture.draw_lines(axes, speed_picture.gpu_lines(record), "ps")
    axes.set_title(record["gpu"]["name"])


def cavity(axes: Axes) -> None:
    LidDrivenCavity(1000, 97).solve(1e-6).plot(axes)


def plate(axes: Axes) -> None:
    sides = {"x": 0.0, "y-": 0.0, "y+": 1.0}
    solve_laplace((96, 96), extent=((0, 1), (0, 1)), boundary=sides).plot(axes)


def cooling(axes: Axes) -> None:
    sides = {"x-": Neumann(), "y-": Neumann(), "x+": Robin(2.0), "y+": Robin(2.0)}
    HeatADI((65, 65), 1 / 64, dt=1e-3, boundary=sides, initial=1.0).run(until=0.3).plot(axes)


def pulse(axes: Axes) -> None:
    problem = gceidd2022.rotating_pulse(0.002)
    GCEIDD(problem, shape=(129, 129), dt=1 / 1024, strips=4).run(until=0.1).plot(axes)


def cylinder(axes: Axes) -> None:
    SquareCylinder(100, (129, 513), length=32.0).run(until=100).plot(axes)


def charge(x: Any, y: Any) -> Any:
    """Return the right side of the Poisson equation of two charges."""
    here = np.exp(-800 * ((x - 0.3) ** 2 + (y - 0.7) ** 2))
    there = np.exp(-800 * ((x - 0.7) ** 2 + (y - 0.3) ** 2))
    return 400 * (there - here)


def draw_potential(axes: Axes, solver: FastPoisson, u: Any, title: str) -> None:
    drawn = axes.contourf(solver.x, solver.y, u, 21)
    axes.figure.colorbar(drawn, ax=axes, label="potential u")
    axes.set(xlabel="x", ylabel="y", aspect="equal", title=title)


def charges(axes: Axes) -> None:
    solver = FastPoisson((129, 129), 1 / 128, boundary={"x-": 1.0, "x+": 0.0, "y": Neumann()})
    draw_potential(axes, solver, solver.solve(charge), "two charges between plates")


def box(axes: Axes) -> None:
    solver = FastPoisson((64, 64), 1 / 64, boundary=0.0, grid="cells")
    u = solver.solve(charge)
    draw_potential(axes, solver, u, "two charges in an earthed box")


def heated(axes: Axes) -> None:
    sides = {"x-": 1.0, "x+": 0.0, "y": 0.0}
    HeatADI((65, 65), 1 / 64, dt=1e-3, boundary=sides).run(until=0.5).plot(axes)


def start_of_a_flow(axes: Axes) -> None:
    StaggeredCavity(400, 64).run(4.0).plot(axes)


def cut_plate(axes: Axes) -> None:
    solver = HeatADI(
        (96, 128),
        extent=((0.0, 4.0), (0.0, 3.0)),
        dt=0.01,
        boundary={"x-": 1.0, "x+": 0.0, "y": lambda x: 1 - x / 4},
        initial=lambda x, y: 2 * np.exp(-4 * ((x - 2.5) ** 2 + (y - 1.5) ** 2)),
    )
    solver.run(until=0.2).plot(axes)
    for rank in range(1, 4):
        last = Slab(0).part(96, rank, 4).start - 1
        axes.axhline(solver.y[last : last + 2].mean(), color="w", ls="--", lw=1)
    axes.set_title("heat conduction on four ranks")


def names_of(notebook: str) -> dict[str, Any]:
    """Run a notebook; return its variables."""
    cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text())["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    return names


def base_of_a_pan(axes: Axes) -> None:
    names = names_of("16_plate_in_SI_units")
    for name, materials in names["bases"].items():
        field = names["base"](*materials).solve_steady()
        axes.plot(100 * field.x, field.u[-1], label=name)
    axes.set(xlabel="x (cm)", ylabel="temperature (°C)", title="the base of a pan on a burner")
    axes.legend()


def year_of_a_column(axes: Axes) -> None:
    names = names_of("14_ocean_column")
    record, steps = names["record"], names["steps"]
    days = np.arange(1, steps + 1) / 365
    axes.contourf(days, names["depth"], record.T, 24, cmap="RdYlBu_r")
    axes.set(xlabel="time (years)", ylabel="depth (m)", ylim=(200, 0), title="a column of the sea")


def smiles(axes: Axes) -> None:
    names = names_of("15_options")
    for one, curve in zip(names["rho"].ravel(), names["smiles"], strict=True):
        axes.plot(names["k"], curve, label=rf"correlation {one:g}")
    axes.set(xlabel="strike", ylabel="implied volatility (%)", title="calls of Heston's model")
    axes.legend()


def warm_wall(axes: Axes) -> None:
    flow, T, *_ = names_of("17_natural_convection")["found"][1e5]
    axes.contourf(flow.x, flow.y, T, np.linspace(0, 1, 21), cmap="coolwarm")
    axes.contour(
        flow.x_faces, flow.y_faces, flow.psi, 9, colors="k", linestyles="-", linewidths=0.8
    )
    axes.set(aspect="equal", xlabel="x", ylabel="y", title="air between a warm and a cold wall")


def greenest_day(axes: Axes) -> None:
    dates = names_of("18_smoothing")["dates"]
    drawn = axes.imshow(dates["of the smooth curve"][::4, ::4], vmin=130, vmax=250)
    axes.figure.colorbar(drawn, ax=axes, label="day of the year")
    axes.set(title="greenest day of 100 000 pixels", xticks=[], yticks=[])


def light_curve(axes: Axes) -> None:
    names = names_of("19_gaussian_process")
    when, mean, band = names["when"][names["order"]], names["mean"], names["band"]
    axes.fill_between(when, mean - band, mean + band, alpha=0.3)
    axes.plot(when, mean)
    axes.plot(names["true_t"], names["walk"], "k:", lw=1)
    axes.set(xlabel="time (days)", ylabel="brightness", xlim=(125, 180), ylim=(-4, 4))
    axes.set_title("a star, measured by night, with a gap")


def conductivity(axes: Axes) -> None:
    names = names_of("11_gradients")
    axes.plot(names["x"], names["true_k"], "k", label="true")
    axes.plot(names["x"], names["k"], "--", label="fitted")
    axes.set(xlabel="x", ylabel="k", title="conductivity of a rod")
    axes.legend()


def conductivities(axes: Axes) -> None:
    """Show the left half of the figure that is stored in the notebook, which needs PyTorch."""
    notebook = json.loads((ROOT / "notebooks" / "12_gradients_torch.ipynb").read_text())
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    (stored,) = (
        each["data"]["image/png"] for each in outputs if "image/png" in each.get("data", {})
    )
    picture = Image.open(BytesIO(b64decode(stored)))
    axes.imshow(picture.crop((0, 0, picture.width // 2, picture.height)))
    axes.set_axis_off()


def closed_curve(axes: Axes) -> None:
    angle = np.linspace(0, 2 * np.pi, 11)
    radius = 1 + 0.4 * np.cos(5 * angle)
    knots = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    knots[-1] = knots[0]
    curve = CubicSpline(angle, knots, bc_type="periodic")(np.linspace(0, 2 * np.pi, 500))
    axes.plot(*curve.T)
    axes.plot(*knots.T, "o")
    axes.set(xlabel="x", ylabel="y", aspect="equal", title="a periodic spline through 10 points")


def ocean(axes: Axes) -> None:
    """Show how a column is mixed above and below a layer with little diffusion."""
    depth = np.linspace(0.0, 200.0, 101)
    diffusivity = 1e-2 * np.exp(-depth / 40) + 1e-5  # m^2/s, at the faces of 100 layers
    k = 3600.0 * diffusivity / 4.0  # with a step of an hour and layers of 2 m
    k[[0, -1]] = 0.0
    centres = 0.5 * (depth[1:] + depth[:-1])
    T = 4.0 + 14.0 * np.exp(-centres / 50)
    for day in range(4):
        axes.plot(T, centres, f"C{day}", label=f"day {5 * day}")
        for _ in range(5 * 24):
            T = solve_tridiagonal(-k[:-1], 1 + k[:-1] + k[1:], -k[1:], T)
    axes.invert_yaxis()
    axes.set(xlabel="temperature (°C)", ylabel="depth (m)", title="a column that is mixed")
    axes.legend(fontsize=8)


def put_options(axes: Axes) -> None:
    """Show the values of put options by Crank-Nicolson steps, for four volatilities."""
    prices, steps, rate = np.linspace(0.0, 2.0, 201), 100, 0.02
    volatility = np.array([[0.1], [0.2], [0.3], [0.4]])
    nodes, half = np.arange(len(prices)), 0.5 / steps
    spread, drift = 0.5 * volatility**2 * nodes**2, 0.5 * rate * nodes
    lower, upper = -half * (spread - drift), -half * (spread + drift)
    diag = 1 + half * (2 * spread + rate)
    lower[:, -1], diag[:, -1] = 0.0, 1.0
    factor = factor_tridiagonal(lower, diag, upper)
    u = np.tile(np.maximum(1 - prices, 0), (len(volatility), 1))
    axes.plot(prices, u[0], "k--", label="at expiry")
    for _ in range(steps):
        u = 2 * factor.solve(u) - u
    for row, sigma in zip(u, volatility.ravel(), strict=True):
        axes.plot(prices, row, label=f"volatility {sigma:.0%}")
    axes.set(xlabel="price / strike", ylabel="value / strike", title="put options, a year before")
    axes.set(xlim=(0.5, 1.5), ylim=(0, 0.5))
    axes.legend(fontsize=8)


def small_work(axes: Axes) -> None:
    record = json.loads(small_picture.CPU.read_text())
    entries = [entry for entry in small_picture.cpu_entries(record) if entry[0] == 64]
    small_picture.draw(axes, entries, small_picture.CPU_CURVES)
    axes.set(xlabel="systems of 64 rows", ylabel="time of a call (µs)", title=cpu_name(record))
    axes.legend(fontsize=7)


# Name of a notebook, or of a card of the first page -> what draws its picture.
PICTURES: dict[str, Callable[[Axes], None]] = {
    "columns": ocean,
    "options": put_options,
    "poisson": box,
    "plate": heated,
    "small": small_work,
    "01_tridiagonal": speed_on_a_cpu,
    "02_cavity": cavity,
    "03_gpu": speed_on_a_gpu,
    "04_lmsor": plate,
    "05_adi": cooling,
    "06_gceidd": pulse,
    "07_cylinder": cylinder,
    "08_poisson": charges,
    "09_staggered": start_of_a_flow,
    "10_distributed": cut_plate,
    "11_gradients": conductivity,
    "12_gradients_torch": conductivities,
    "13_splines": closed_curve,
    "14_ocean_column": year_of_a_column,
    "15_options": smiles,
    "16_plate_in_SI_units": base_of_a_pan,
    "17_natural_convection": warm_wall,
    "18_smoothing": greenest_day,
    "19_gaussian_process": light_curve,
}


def renew(names: Sequence[str] = ()) -> None:
    """Draw the pictures of some notebooks, by default of all."""
    for name in names or PICTURES:
        figure = Figure(figsize=SIZE, layout="constrained")
        PICTURES[name](figure.subplots())
        write_image(figure, FOLDER / f"{name}.png", COLOURS)
