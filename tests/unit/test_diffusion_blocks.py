"""`implicit_diffusion` of arrays of dask: block by block, with columns in one chunk."""

import numpy as np
import pytest

from pysolvers import implicit_diffusion

da = pytest.importorskip("dask.array")

SHAPE = (12, 6, 10)


@pytest.fixture
def ocean(rng):
    T = rng.standard_normal(SHAPE)
    K = rng.uniform(0.1, 1, (13, 6, 10))
    dz = rng.uniform(1, 2, 12)
    inside = np.arange(12)[:, None, None] < rng.integers(0, 13, (6, 10))
    return T, K, dz, inside


def test_blocks_give_the_bits_of_the_whole(ocean, rng):
    T, K, dz, inside = ocean
    flux, value = rng.standard_normal((2, 6, 10))
    options = {"axis": 0, "theta": 0.6, "flux_first": flux, "value_last": value}
    expected = implicit_diffusion(T, K, dz, 0.7, where=inside, source=T, **options)

    lazy = da.from_array(T, chunks=(-1, 4, 3))
    x = implicit_diffusion(lazy, K, dz, 0.7, where=inside, source=lazy, **options)

    assert isinstance(x, da.Array)
    assert x.dtype == expected.dtype
    assert x.chunks == lazy.chunks
    np.testing.assert_array_equal(x.compute(scheduler="synchronous"), expected)


def test_any_operand_can_have_chunks(ocean):
    T, K, dz, _ = ocean
    expected = implicit_diffusion(T.astype(np.float32), K[1:-1], dz, 0.7, axis=0)

    x = implicit_diffusion(
        T.astype(np.float32), da.from_array(K[1:-1], chunks=(-1, 3, 5)), dz, 0.7, axis=-3
    )

    np.testing.assert_array_equal(x.compute(scheduler="synchronous"), expected)
    assert x.dtype == expected.dtype


@pytest.mark.parametrize("name", ["T", "K"])
def test_columns_in_several_chunks_are_refused_with_what_to_write(ocean, name):
    T, K, dz, _ = ocean
    operands = {"T": T, "K": K}
    operands[name] = da.from_array(operands[name], chunks=(4, -1, -1))

    with pytest.raises(ValueError, match=rf"write {name}\.rechunk\({{0: -1}}\)"):
        implicit_diffusion(**operands, dz=dz, dt=0.7, axis=0)


def test_out_is_refused(ocean):
    T, K, dz, _ = ocean
    with pytest.raises(ValueError, match="out must be None with arrays of dask"):
        implicit_diffusion(da.from_array(T), K, dz, 0.7, axis=0, out=T)


def test_faces_are_counted_before_blocks_are_computed(ocean):
    T, K, dz, _ = ocean
    with pytest.raises(ValueError, match="K must have 11 faces"):
        implicit_diffusion(da.from_array(T), K[:5], dz, 0.7, axis=0)


def test_labelled_arrays_in_chunks(ocean):
    xarray = pytest.importorskip("xarray")
    T, K, dz, inside = ocean
    labelled = xarray.DataArray(T, dims=("z", "y", "x"))
    faces = xarray.DataArray(K.transpose(1, 2, 0), dims=("y", "x", "zface"))
    where = xarray.DataArray(inside, dims=("z", "y", "x"))
    thick = xarray.DataArray(dz, dims="z")
    expected = implicit_diffusion(labelled, faces, thick, 0.7, axis="z", where=where)

    x = implicit_diffusion(
        labelled.chunk(y=2, x=5), faces, thick, 0.7, axis="z", where=where.chunk(y=3)
    )

    assert x.dims == labelled.dims
    np.testing.assert_array_equal(x.compute(scheduler="synchronous"), expected)
    with pytest.raises(ValueError, match=r"write T\.chunk\(z=-1\)"):
        implicit_diffusion(labelled.chunk(z=6), faces, thick, 0.7, axis="z")
