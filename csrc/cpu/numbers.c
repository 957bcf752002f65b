/* numbers.c - the table of ps_numbers.h of the CPU backend, as backend.c has the other one.
 */
#include "ps_numbers.h"

#include "blocks.h"
#include "differences.h"
#include "modes.h"
#include "rates.h"
#include "recurrence.h"
#include "runtime/fp_mode.h"

PS_IN_DEFAULT_MODE(recurrence, ps_cpu_recurrence,
                   (const ps_recurrence *r, const ps_exec *exec), (r, exec))
PS_IN_DEFAULT_MODE(blocks_run, ps_cpu_blocks_run,
                   (const ps_blocks *b, const ps_exec *exec, ps_report *report),
                   (b, exec, report))
PS_IN_DEFAULT_MODE(rates, ps_cpu_rates, (const ps_rates *r, const ps_exec *exec),
                   (r, exec))

PS_IN_DEFAULT_MODE(modes, ps_cpu_modes, (const ps_modes *p, const ps_exec *exec),
                   (p, exec))

PS_IN_DEFAULT_MODE(differences, ps_cpu_differences,
                   (const ps_differences *d, const ps_exec *exec), (d, exec))
PS_IN_DEFAULT_MODE(difference_solve, ps_cpu_difference_solve,
                   (ps_difference_factors f, const ps_differences *d,
                    const ps_exec *exec),
                   (f, d, exec))

static const ps_number_entries entries = {
    .recurrence_work = ps_cpu_recurrence_work,
    .recurrence = recurrence,
    .blocks_store = ps_cpu_blocks_store,
    .blocks_work = ps_cpu_blocks_work,
    .blocks_run = blocks_run,
    .rates = rates,
    .modes = modes,
    .differences = differences,
    .difference_solve_work = ps_cpu_difference_solve_work,
    .difference_solve = difference_solve,
};

const ps_number_entries *
ps_number_entries_get(void)
{
    return &entries;
}
