"""Numbers that are legal but extreme are refused by name where squares of them would overflow."""

import pytest

from pysolvers import LidDrivenCavity, RedBlackSOR

UNIT = ((0.0, 1.0), (0.0, 1.0))


@pytest.mark.parametrize("value", [1e308, -1e200, 1e-300, 5e-324])
@pytest.mark.parametrize("name", ["reynolds", "lid_velocity", "pseudo_dt"])
def test_cavity(name, value):
    value = value if name == "lid_velocity" else abs(value)
    with pytest.raises(ValueError, match=f"{name} must be from 1e-60 to 1e\\+60"):
        LidDrivenCavity(**{"n": 9, name: value})


@pytest.mark.parametrize("velocity", [1e60, 1e-60])
def test_cavity_at_the_ends_of_the_range_has_the_flow_of_unit_velocity(velocity):
    expected = LidDrivenCavity(100, 9).iterate(40)

    cavity = LidDrivenCavity(100, 9, lid_velocity=velocity).iterate(40)

    assert cavity.psi / velocity == pytest.approx(expected.psi, rel=1e-9, abs=1e-13)
    assert cavity.residual == pytest.approx(expected.residual, rel=1e-6)


def test_cavity_takes_the_sweeps_that_the_backend_counts():
    with pytest.raises(ValueError, match="psi_sweeps must be at most 2147483647"):
        LidDrivenCavity(100, 9, psi_sweeps=2**40)


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_plate(size):
    for extent in (((0, size), (0, 1)), ((0, 1), (0, size))):
        with pytest.raises(ValueError, match=r"size of a cell along [xy] must be from"):
            RedBlackSOR((4, 4), extent=extent, boundary=0.0)
    with pytest.raises(ValueError, match="conductivity must be from"):
        RedBlackSOR((4, 4), extent=UNIT, boundary=0.0, conductivity=size)
    with pytest.raises(ValueError, match="size of a cell"):
        RedBlackSOR((4, 4), spacing=size, boundary=0.0)


@pytest.mark.parametrize("size", [1e50, 1e-50])
def test_plate_of_any_unit_of_length_has_the_same_temperatures(size):
    sides = {"x-": 1.0, "x+": 0.0, "y-": 0.0, "y+": 0.5}
    expected = RedBlackSOR((6, 5), extent=UNIT, boundary=sides).iterate(30).u

    u = RedBlackSOR((6, 5), extent=((0, size), (0, size)), boundary=sides).iterate(30).u

    assert u == pytest.approx(expected, rel=1e-12)
