"""The modules with public names, except those that need other packages."""

import pysolvers
import pysolvers.distributed
import pysolvers.flow
import pysolvers.heat
import pysolvers.poisson
import pysolvers.relaxation
import pysolvers.spline
import pysolvers.transport

MODULES = (
    pysolvers,
    pysolvers.distributed,
    pysolvers.flow,
    pysolvers.heat,
    pysolvers.poisson,
    pysolvers.relaxation,
    pysolvers.spline,
    pysolvers.transport,
)
