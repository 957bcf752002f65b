"""Manufactured solutions of parabolic equations, and the prices of options by quadrature."""

import numpy as np
from scipy.integrate import quad

from pysolvers import Dirichlet, Neumann, ParabolicADI, Robin

SCHEMES = ("douglas", "craig-sneyd", "modified-craig-sneyd", "hundsdorfer-verwer")
A = {"xx": 0.7, "yy": 0.5, "zz": 0.6, "xy": 0.5, "xz": -0.4, "yz": 0.3}
B = {"x": 1.0, "y": -0.8, "z": 0.5}
C = -0.3
WAVE = {"x": 2.0, "y": 3.0, "z": 1.5}
ROBIN = 1.5


def named(names, function):
    """Return a function with these parameters, which calls one of keywords."""
    inner = {"f": function}
    pairs = ", ".join(f"{name}={name}" for name in names)
    return eval(f"lambda {', '.join(names)}: f({pairs})", inner)


def stretched(nodes):
    """Return coordinates in 0 .. 1, of which some are twice as far apart as others."""
    s = np.linspace(0, 1, nodes)
    return s + 0.03 * np.sin(2 * np.pi * s)


class Wave:
    """u = e^-t sin(k x + 0.7 t + 0.3), periodic if `sides` is, for coefficients of x and t."""

    def __init__(self, axes, sides, *, mixed=True, varies=True):
        self.names, self.sides, self.varies = "xyz"[:axes], sides, varies
        self.wave = dict.fromkeys("xyz", 2 * np.pi) if sides == "periodic" else WAVE
        pairs = [p + q for k, q in enumerate(self.names) for p in self.names[: k + 1]]
        self.pairs = [pair for pair in pairs if mixed or pair[0] == pair[1]]

    def u(self, t, **places):
        return np.exp(-t) * np.sin(self.phase(t, places))

    def phase(self, t, places):
        return sum(self.wave[name] * places[name] for name in self.names) + 0.7 * t + 0.3

    def slope(self, name, t, places):
        return self.wave[name] * np.exp(-t) * np.cos(self.phase(t, places))

    def coefficient(self, pair, places):
        x = places["x"]
        shape = 0.2 * np.sin(2 * np.pi * x) if self.sides == "periodic" else 0.3 * x
        return A[pair] * (1 + shape) * (1 + 0.3 * np.sin(3 * places.get("t", 0.0)))

    def source(self, t, **places):
        u, k = self.u(t, **places), self.wave
        found = -u + 0.7 * self.slope("x", t, places) / k["x"] - C * u
        for pair in self.pairs:
            when = {"t": t} if self.varies else {}
            found = found + self.coefficient(pair, places | when) * k[pair[0]] * k[pair[1]] * u
        for name in self.names:
            found = found - B[name] * self.slope(name, t, places)
        return found

    def flux(self, name, sign):
        def of(t, **places):
            when = {"t": t} if self.varies else {}
            return sign * self.coefficient(2 * name, places | when) * self.slope(name, t, places)

        return of

    def boundary(self):
        """Return the sides; ``'some'`` are different ones."""
        found, parameters = {}, [*self.names, "t"]
        for k, name in enumerate(self.names):
            for end, sign in (("-", -1), ("+", 1)):
                kind = self.sides
                if kind == "some":
                    kind = ("value", "flux", "robin")[(k + (sign > 0)) % 3]
                flux = self.flux(name, sign)
                if kind == "value":
                    side = Dirichlet(named(parameters, self.u))
                elif kind == "flux":
                    side = Neumann(named(parameters, flux))
                elif kind == "robin":
                    side = Robin(
                        ROBIN,
                        named(
                            parameters,
                            lambda t, flux=flux, **p: self.u(t, **p) + flux(t, **p) / ROBIN,
                        ),
                    )
                else:
                    side = kind
                found[name + end] = side
        return found

    def errors(self, nodes, steps, *, even=False, until=0.5, **options):
        """Return the largest error, and the root of the mean square."""
        names, when = list(self.names), ["t"] if self.varies else []
        nodes -= self.sides == "periodic"
        line = stretched(nodes + (self.sides == "periodic"))
        domain = (
            {"extent": ((0, 1),) * len(names)} if even else {"coordinates": [line] * len(names)}
        )
        solver = ParabolicADI(
            (nodes,) * len(names),
            diffusion={
                pair: named([*names, *when], lambda pair=pair, **p: self.coefficient(pair, p))
                for pair in self.pairs
            },
            advection={name: B[name] for name in names},
            reaction=C,
            source=named([*names, "t"], self.source),
            boundary=self.boundary(),
            initial=named(names, lambda **p: self.u(0.0, **p)),
            dt=until / steps,
            **domain,
            **options,
        )
        result = solver.run(until, progress=False)
        places = {n: getattr(result, n).reshape(-1, *[1] * k) for k, n in enumerate(names)}
        error = np.abs(result.u - self.u(until, **places))
        return error.max(), np.sqrt((error**2).mean())


# In 't Hout and Foulon (2010): kappa, eta, sigma, rho, rates of both currencies, expiry; and meshes
# along S: even from `low` to `high` times the strike, beyond up to `most` times by sinh at `bend`.
HESTON = {
    1: ((1.5, 0.04, 0.3, -0.9, 0.025, 0.0, 1.0), (0.8, 1.0, 3.0, 8.5)),
    2: ((3.0, 0.12, 0.04, 0.6, 0.01, 0.04, 1.0), (0.8, 1.2, 4.0, 22.0)),
    3: ((0.6067, 0.0707, 0.2928, -0.7571, 0.03, 0.0, 3.0), (0.54, 1.12, 4.0, 20.0)),
    4: ((2.5, 0.06, 0.5, -0.1, 0.0507, 0.0469, 0.25), (0.9, 1.0, 4.0, 17.0)),
}
STRIKE = 100.0


def transform(z, v, expiry, kappa, eta, sigma, rho):
    """Return E exp(i z log(S/F)), F the forward, in the form that does not leave the branch."""
    root = np.sqrt((rho * sigma * 1j * z - kappa) ** 2 + sigma**2 * (1j * z + z * z))
    minus = kappa - rho * sigma * 1j * z - root
    ratio = minus / (minus + 2 * root)
    decay = np.exp(-root * expiry)
    level = minus * expiry - 2 * np.log((1 - ratio * decay) / (1 - ratio))
    slope = minus / sigma**2 * (1 - decay) / (1 - ratio * decay)
    return np.exp(kappa * eta / sigma**2 * level + slope * v)


def heston_call(spot, v, parameters, strike=STRIKE):
    """Return the price of a call by Heston's two probabilities."""
    kappa, eta, sigma, rho, domestic, foreign, expiry = parameters
    forward = spot * np.exp((domestic - foreign) * expiry)
    k = np.log(strike / forward)

    def probability(shift):
        def integrand(w):
            phi = transform(w + shift, v, expiry, kappa, eta, sigma, rho)
            return (np.exp(-1j * w * k) * phi / (1j * w)).real

        return 0.5 + quad(integrand, 0, np.inf, limit=500, epsabs=1e-10)[0] / np.pi

    discount = np.exp(-domestic * expiry)
    return discount * (forward * probability(-1j) - strike * probability(0))


def heston_call_by_one_integral(spot, v, parameters, strike=STRIKE):
    """Return the same price by one integral along Im z = -1/2 (Lewis 2001)."""
    kappa, eta, sigma, rho, domestic, foreign, expiry = parameters
    forward = spot * np.exp((domestic - foreign) * expiry)
    k = np.log(forward / strike)

    def integrand(w):
        phi = transform(w - 0.5j, v, expiry, kappa, eta, sigma, rho)
        return (np.exp(1j * w * k) * phi).real / (w * w + 0.25)

    integral = quad(integrand, 0, np.inf, limit=500, epsabs=1e-12)[0]
    return np.exp(-domestic * expiry) * (forward - np.sqrt(forward * strike) / np.pi * integral)


def heston_mesh(nodes, mesh, largest=3.0, scale=0.02):
    """Return coordinates of S, one of them the strike, and of the variance v."""
    (n, m), (low, high, most, bend) = nodes, mesh
    low, high, most = low * STRIKE, high * STRIKE, most * STRIKE
    before, middle = np.arcsinh(low / bend), (high - low) / bend
    whole = before + middle + np.arcsinh((most - high) / bend)
    at_strike = before + (STRIKE - low) / bend
    left = round(at_strike * (n - 1) / whole)
    place = at_strike / left * np.arange(n) - before
    below, above = np.minimum(place, 0), np.maximum(place - middle, 0)
    s = low + bend * (np.sinh(below) + np.clip(place, 0, middle) + np.sinh(above))
    s[0], s[left] = 0.0, STRIKE
    return s, scale * np.sinh(np.linspace(0, np.arcsinh(largest / scale), m))


def heston_solver(parameters, s, v, **options):
    """Return a solver of Heston's equation for a call; t is the time to expiry.

    The payoff at the strike is its mean over two thirds of the cell: then the error of a difference
    of second order is least near the strike.
    """
    kappa, eta, sigma, rho, domestic, foreign, _ = parameters
    payoff = np.maximum(s - STRIKE, 0.0)
    k = int(np.argmin(abs(s - STRIKE)))
    payoff[k] += (s[k + 1] - s[k - 1]) / 24
    return ParabolicADI(
        (len(v), len(s)),
        coordinates=(s, v),
        diffusion={
            "xx": lambda x, y: 0.5 * y * x**2,
            "xy": lambda x, y: rho * sigma * x * y,
            "yy": lambda y: 0.5 * sigma**2 * y,
        },
        advection={"x": lambda x: (domestic - foreign) * x, "y": lambda y: kappa * (eta - y)},
        reaction=-domestic,
        boundary={"x-": 0.0, "x+": "linear", "y": "linear"},
        initial=payoff,
        **options,
    )
