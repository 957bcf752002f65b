"""Figures of results: axes, labels, windows, notebooks and films."""

import functools
import subprocess
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import pysolvers
from pysolvers import (
    GCEIDD,
    ConvectionDiffusion,
    Dirichlet,
    HeatADI,
    LidDrivenCavity,
    ParabolicADI,
    SquareCylinder,
    StaggeredCavity,
    solve_laplace,
)
from pysolvers.papers import ghia_profiles

pytest.importorskip("matplotlib")

from matplotlib import animation, pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg

from pysolvers.plots.cavity import plot_profiles

pytestmark = pytest.mark.filterwarnings("ignore::pysolvers.CoarseGridWarning")


def heat():
    return HeatADI((9, 9), 0.125, 1e-3, initial=lambda x, y: np.sin(3 * x) * y, boundary=0.0)


def heat_in_a_box():
    return HeatADI(
        (3, 5, 4), 0.125, 1e-3, initial=lambda x, y, z: np.sin(3 * x) * y * z, boundary=0.0
    )


def transport():
    problem = ConvectionDiffusion((1.0, 0.5), 0.01, initial=lambda x, y: x * y, boundary=0.0)
    return GCEIDD(problem, (9, 9), 0.05)


def parabolic(shape=(9, 8), **options):
    """Two equations, of which pictures show the first one, of one axis both."""
    axes = "xyz"[: len(shape)]
    return ParabolicADI(
        shape,
        **{
            "spacing": 0.125,
            "dt": 0.05,
            "diffusion": {name * 2: 0.1 for name in axes},
            "boundary": 0.0,
            "initial": lambda x: np.sin(3 * x),
        }
        | options,
    )


STEPPERS = {
    "heat": (heat, 0.02),
    "transport": (transport, 1.0),
    "parabolic": (partial(parabolic, batch=2), 0.4),
    "parabolic on a line": (partial(parabolic, (9,), batch=2), 0.4),
    "staggered": (lambda: StaggeredCavity(100, 8), 8.0),
    "cylinder": (lambda: SquareCylinder(100, (33, 201)), 1.0),
}


def run(name):
    make, end = STEPPERS[name]
    return make().run(end)


RESULTS = {
    **{name: partial(run, name) for name in STEPPERS if "line" not in name},
    "heat in a box": lambda: heat_in_a_box().run(0.01),
    "heat in a strip": lambda: HeatADI((5, 9), extent=((0, 9), (0, 1)), dt=0.1, boundary=0.0).run(
        0.1
    ),
    "parabolic in a box": lambda: parabolic((3, 5, 4)).run(0.1),
    "cavity": lambda: LidDrivenCavity(100, 17).solve(1e-3),
    "cavity by lines": lambda: LidDrivenCavity(100, 17, method="line-jacobi").solve(1e-2),
    "plate": lambda: solve_laplace((9, 8), spacing=0.1, boundary={"x": 0.0, "y-": 0.0, "y+": 1.0}),
    "steady cylinder": lambda: SquareCylinder(20, (33, 201), steady=True).solve(1e-1),
}


@functools.cache
def result_of(name):
    return RESULTS[name]()


@pytest.fixture(params=RESULTS)
def result(request):
    """A result, which no test changes."""
    return result_of(request.param)


FIGURES = ("transport", "staggered", "heat in a box", "heat in a strip")


def colour_bars(figure):
    return [axes for axes in figure.axes if axes.get_label() == "<colorbar>"]


def test_figure_belongs_to_pyplot_and_every_scale_is_named(result):
    axes = np.ravel(result.plot())

    (number,) = pyplot.get_fignums()
    figure = pyplot.figure(number)
    assert all(plot.figure is figure for plot in axes)
    assert colour_bars(figure)
    for bar in colour_bars(figure):
        # A unit in brackets; only the user knows the unit of a temperature or of u.
        assert "(" in bar.get_ylabel() or bar.get_ylabel() in ("temperature", "u")
        low, high = bar.get_ylim()
        ticks = bar.get_yticks()
        assert len(ticks) >= 3
        assert all(low - 1e-6 <= tick <= high + 1e-6 for tick in ticks), "a tick out of place"
    for plot in axes:
        assert plot.get_title()
        assert plot.get_xlabel()
        assert plot.get_ylabel()
        assert plot.has_data() or plot.texts


# Figures of other cells and labels; a layout takes seconds.
@pytest.mark.parametrize(
    "result",
    [name if name in FIGURES else pytest.param(name, marks=pytest.mark.slow) for name in RESULTS],
    indirect=True,
)
def test_no_label_is_cut(result):
    figure = np.ravel(result.plot())[0].figure
    figure.draw_without_rendering()

    width, height = figure.bbox.width, figure.bbox.height
    for axes in figure.axes:
        for label in (axes.xaxis.label, axes.yaxis.label, axes.title):
            if label.get_text():
                box = label.get_window_extent()
                assert box.x0 >= -1 and box.y0 >= -1, label
                assert box.x1 <= width + 1 and box.y1 <= height + 1, label


def test_plot_on_given_axes(result):
    figure, axes = pyplot.subplots()

    assert result.plot(axes, cmap="gray") is axes
    assert pyplot.get_fignums() == [figure.number]
    assert axes.has_data()
    assert axes.collections[0].get_cmap().name == "gray"


def test_window_opens_once_in_a_program_and_not_elsewhere(monkeypatch):
    calls = []
    monkeypatch.setattr(pyplot, "show", lambda: calls.append(1))
    state = heat().result()
    state.plot()
    assert not calls, "agg has no windows"
    state.plot(show=True)
    assert len(calls) == 1

    monkeypatch.setattr(FigureCanvasAgg, "required_interactive_framework", "windows", raising=False)
    state.plot()
    assert len(calls) == 2
    state.plot(show=False)
    state.plot(pyplot.subplots()[1])
    with pyplot.ion():
        state.plot()
    assert len(calls) == 2


def test_failed_plot_leaves_no_figure():
    with pytest.raises(AttributeError, match="no_such_option"):
        heat().result().plot(no_such_option=1)

    assert not pyplot.get_fignums()


def test_package_does_not_import_matplotlib_before_a_plot():
    code = "import sys, pysolvers; sys.exit('matplotlib' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


@pytest.mark.slow  # starts a kernel of Jupyter, for seconds
def test_notebook_shows_the_figure_without_another_import(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    code = "import pysolvers\npysolvers.LidDrivenCavity(100, 17).solve(1e-2).plot();"
    film = (
        "solver = pysolvers.HeatADI((5, 5), 0.25, 0.01, boundary=0.0, initial=lambda x, y: x)\n"
        "solver.record(0.01).animate()"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in (code, film)])

    nbclient.NotebookClient(book, timeout=120).execute()

    assert any("image/png" in output.get("data", {}) for output in book.cells[0].outputs)
    assert any("<script" in o.get("data", {}).get("text/html", "") for o in book.cells[1].outputs)


@pytest.mark.parametrize("cavity", [LidDrivenCavity(100, 17), StaggeredCavity(100, 8)])
def test_cavity_shows_the_points_of_ghia(cavity):
    plots = cavity.solve(1e-2).plot().ravel()
    profiles = next(axes for axes in plots if axes.get_title() == "centre lines")
    table = ghia_profiles(100)

    marks = [line.get_xydata() for line in profiles.lines if line.get_marker() == "o"]
    np.testing.assert_array_equal(marks[0], np.column_stack([table["y"], table["u"]]))
    np.testing.assert_array_equal(marks[1], np.column_stack([table["x"], table["v"]]))
    assert any("Ghia" in text.get_text() for text in profiles.get_legend().get_texts())


@pytest.mark.parametrize(("reynolds", "left_out"), [(400, ", 1 value left out"), (1000, "")])
def test_legend_tells_of_a_value_that_is_left_out(reynolds, left_out):
    # The table for Re = 400 has a misprint, which is not a number in the data of the package.
    axes = pyplot.figure().subplots()
    plot_profiles(axes, LidDrivenCavity(reynolds, 17).iterate(1).result())

    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert [label for label in labels if "Ghia" in label] == [f"Ghia et al. 1982{left_out}"]


def test_pseudo_time_step_has_an_axis_of_its_own():
    figure = LidDrivenCavity(100, 17).solve(1e-2).plot()[0, 0].figure
    labels = [axes.get_ylabel() for axes in figure.axes]

    assert "root mean square residual" in labels
    assert "pseudo-time step (side / lid speed)" in labels


@pytest.mark.parametrize("name", STEPPERS)
def test_record_keeps_states_and_does_not_change_the_run(name):
    make, end = STEPPERS[name]
    solver, filmed = make(), make().record(end, every=end / 4)
    for part in (1, 2, 3):
        solver.run(part * end / 4)
    plain = solver.run(end)

    field = "omega" if name == "cylinder" else "u"
    np.testing.assert_array_equal(getattr(filmed, field), getattr(plain, field))
    assert filmed.time == plain.time
    times = [frame.time for frame in filmed.frames]
    assert times[0] == 0.0 and times[-1] == filmed.time
    np.testing.assert_allclose(times, np.linspace(0, end, 5), rtol=1e-12)
    np.testing.assert_array_equal(getattr(filmed.frames[-1], field), getattr(filmed, field))
    assert not np.array_equal(getattr(filmed.frames[1], field), getattr(filmed, field))
    assert plain.frames == ()


# One film of pictures and one of curves; matplotlib draws a frame in half a second.
@pytest.mark.parametrize(
    "name",
    [
        name
        if name in ("transport", "parabolic on a line")
        else pytest.param(name, marks=pytest.mark.slow)
        for name in STEPPERS
    ],
)
def test_film_is_written(name, tmp_path):
    image = pytest.importorskip("PIL.Image")
    make, end = STEPPERS[name]
    result = make().record(end, every=end / 2)

    result.animate(tmp_path / "film.gif", fps=5, dpi=40)

    with image.open(tmp_path / "film.gif") as film:
        assert film.n_frames == len(result.frames)
        assert film.info["duration"] == 200
    assert not pyplot.get_fignums()


def test_film_of_a_notebook_needs_no_network():
    page = heat().record(0.005, every=0.005).animate()._repr_html_()

    assert "<script" in page
    assert "https://" not in page
    assert "fa-" not in page


def test_film_without_frames_names_record():
    with pytest.raises(ValueError, match=r"record\(until"):
        heat().run(0.01).animate()


@pytest.mark.parametrize("name", ["film.mp4", "film", "film.mp5"])
def test_film_without_ffmpeg_names_a_format_of_pillow(tmp_path, monkeypatch, name):
    monkeypatch.setattr(animation.writers, "list", lambda: ["pillow", "html"])

    with pytest.raises(ValueError, match=r"needs ffmpeg, which is not installed; write 'film.gif'"):
        heat().record(0.01, every=0.005).animate(tmp_path / name)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "suffix", [".GIF", *(pytest.param(s, marks=pytest.mark.slow) for s in (".apng", ".webp"))]
)
def test_films_of_pillow_need_no_ffmpeg(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(animation.writers, "list", lambda: ["pillow", "html"])
    path = tmp_path / f"film{suffix}"

    heat().record(0.005, every=0.005).animate(path, dpi=20)

    assert path.stat().st_size > 0


def test_frames_are_not_saved(tmp_path):
    heat().record(0.01, every=0.005).save(tmp_path / "state.npz")

    assert type(heat().result()).load(tmp_path / "state.npz").frames == ()


def test_plate_at_the_temperature_of_the_surroundings_is_painted():
    # Rounding errors around 293.15 far from the heated spot must not leave white places.
    plate = HeatADI(
        (65, 65),
        1e-3,
        0.1,
        diffusivity=1e-5,
        boundary=293.15,
        initial=293.15,
        source=lambda x, y: 50.0 * np.exp(-((x - 0.01) ** 2 + (y - 0.01) ** 2) / 1e-5),
    )
    figure = pyplot.figure(layout="constrained")
    axes = figure.subplots()
    result = plate.run(2.0)
    errors = np.random.default_rng(0).uniform(-2e-12, 2e-12, result.u.shape)
    result = replace(result, u=result.u + errors)
    result.plot(axes, label="temperature (K)", unit="m")

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    box = axes.get_window_extent()
    pixels = np.asarray(canvas.buffer_rgba())[::-1]  # the first row is the lowest one
    inner = pixels[int(box.y0) + 3 : int(box.y1) - 3, int(box.x0) + 3 : int(box.x1) - 3, :3]
    assert inner.size and (inner.min(axis=-1) < 250).all()
    (scale,) = colour_bars(figure)
    assert scale.get_ylabel() == "temperature (K)"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (m)", "y (m)")
    pyplot.close(figure)


@pytest.mark.parametrize("name", ["heat", "transport", "plate"])
def test_label_and_unit_of_a_picture_are_those_that_are_given(name):
    axes = RESULTS[name]().plot(show=False, label="salinity (g/kg)", unit="km")
    figure = np.ravel(axes)[0].figure

    assert colour_bars(figure)[0].get_ylabel() == "salinity (g/kg)"
    assert np.ravel(axes)[0].get_xlabel() == "x (km)"
    if name == "transport":
        assert (axes[1].get_xlabel(), axes[1].get_ylabel()) == ("x or y (km)", "salinity (g/kg)")
    pyplot.close(figure)


def test_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)

    with pytest.raises(ModuleNotFoundError, match="matplotlib is not installed"):
        pysolvers.HeatADI((5, 5), 0.25, 0.01, boundary=Dirichlet(0.0)).result().plot()


def test_a_path_instead_of_axes_is_refused(result):
    with pytest.raises(TypeError, match=r"ax must be axes of matplotlib, got str; to write"):
        result.plot("figure.png")

    assert not pyplot.get_fignums()
