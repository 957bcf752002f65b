/* heat_reals.cu - the sweeps of heat_sweeps.h and heat_teams.h, compiled once per dtype.
 */
#include "heat/heat_launch.cuh"
#include "heat/heat_team_launch.cuh"

namespace pysolvers::heat {

using Real = PS_NUMBER;

template bool heat_rows_fit<Real>(int64_t, const ps_cuda_device *);
template bool heat_columns_fit<Real>(int64_t, const ps_cuda_device *);
template size_t heat_table_bytes<Real>();
template ps_status heat_plan_rows(const HeatRows<Real> &, const HeatMatrix &, void *,
                                  cudaStream_t, HeatPlan<Real> *);
template ps_status heat_plan_columns(const HeatColumns<Real> &, const HeatMatrix &,
                                     void *, cudaStream_t, HeatPlan<Real> *);
template ps_status heat_sweep_rows(const HeatRows<Real> &, const HeatPlan<Real> &,
                                   cudaStream_t);
template ps_status heat_sweep_columns(const HeatColumns<Real> &, const HeatPlan<Real> &,
                                      cudaStream_t);

template bool heat_teams_accept<Real>(const HeatColumns<Real> &, const ps_cuda_device *);
template size_t heat_team_bytes<Real>(const ps_cuda_device *);
template ps_status heat_plan_teams(const HeatColumns<Real> &, const HeatMatrix &, void *,
                                   cudaStream_t, HeatTeamPlan<Real> *);
template ps_status heat_sweep_teams(const HeatColumns<Real> &, const HeatTeamPlan<Real> &,
                                    int64_t, cudaStream_t);

} // namespace pysolvers::heat
