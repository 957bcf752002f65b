"""How many steps or iterations a call of the backend makes (`_runtime.fields`)."""

import numpy as np

from pysolvers import GCEIDD, ConvectionDiffusion, HeatADI
from pysolvers._runtime import fields


def test_calls_of_the_backend_take_a_second_or_two(monkeypatch):
    assert fields.count_of_a_call(1024, 64**2, None) == 1024
    assert fields.count_of_a_call(1024, 4096**2, "cpu") == 32
    assert fields.count_of_a_call(1024, 1024**3, "cpu") == 16
    assert fields.count_of_a_call(1024, 4096**2, "cuda:1") == 1024

    pulse = ConvectionDiffusion((1.0, 0.5), 0.01, initial=lambda x, y: x * y, boundary=0.0)
    makers = (
        lambda: HeatADI((9, 8), 0.1, 0.01, initial=1.0, boundary=0.0),
        lambda: GCEIDD(pulse, shape=(9, 8), dt=0.01),
    )
    whole = [make().run(0.5).u for make in makers]
    monkeypatch.setitem(fields._UPDATES, "cpu", 1)
    for make, expected in zip(makers, whole, strict=True):
        solver = make()
        assert solver._most_steps == 16
        np.testing.assert_array_equal(solver.run(0.5).u, expected)
