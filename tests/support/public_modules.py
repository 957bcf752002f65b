"""The modules with public names, except those that need other packages."""

import pysolvers
import pysolvers.distributed
import pysolvers.flow
import pysolvers.heat
import pysolvers.papers
import pysolvers.papers.gceidd2022
import pysolvers.papers.lmsor2012
import pysolvers.papers.logp1993
import pysolvers.papers.pta2020
import pysolvers.papers.survey2014
import pysolvers.papers.wei2013
import pysolvers.parabolic
import pysolvers.poisson
import pysolvers.relaxation
import pysolvers.spline
import pysolvers.transport

MODULES = (
    pysolvers,
    pysolvers.distributed,
    pysolvers.flow,
    pysolvers.heat,
    pysolvers.papers,
    pysolvers.papers.gceidd2022,
    pysolvers.papers.lmsor2012,
    pysolvers.papers.logp1993,
    pysolvers.papers.pta2020,
    pysolvers.papers.survey2014,
    pysolvers.papers.wei2013,
    pysolvers.parabolic,
    pysolvers.poisson,
    pysolvers.relaxation,
    pysolvers.spline,
    pysolvers.transport,
)
