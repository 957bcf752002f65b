"""Determinants in `pysolvers.torch`: only the need of row exchanges moves matrices to the CPU."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

from pysolvers import BackendError  # noqa: E402
from pysolvers._blocks.systems import ExchangesNeededError  # noqa: E402
from pysolvers.torch import _logdet  # noqa: E402


class OnDevice(torch.Tensor):
    """Tensors that are said to be on a device."""

    is_cuda = True


def computed_after(error):
    """Return the kind of the blocks of which a function that cannot compute there gets those."""

    def compute(*blocks, **options):
        if isinstance(blocks[1], torch.Tensor):
            raise error
        return type(blocks[1])

    blocks = [torch.eye(2, dtype=torch.float64)[None].as_subclass(OnDevice) for _ in range(3)]
    return _logdet._computed(compute, (*blocks, None, False, None))


def test_matrices_that_need_row_exchanges_are_computed_on_the_cpu():
    assert computed_after(ExchangesNeededError("exchanges")) is np.ndarray


def test_another_error_of_the_device_is_raised():
    with pytest.raises(BackendError, match="out of memory"):
        computed_after(BackendError("factor_block_tridiagonal: out of memory"))
