/* numbers.c - the table of ps_numbers.h of the CPU backend, as backend.c has the other one.
 */
#include "ps_numbers.h"

#include "blocks.h"
#include "rates.h"
#include "recurrence.h"
#include "runtime/fp_mode.h"

static ps_status
recurrence(const ps_recurrence *r, const ps_exec *exec)
{
    const ps_fp_mode mode = ps_fp_mode_enter();
    const ps_status status = ps_cpu_recurrence(r, exec);

    ps_fp_mode_leave(mode);
    return status;
}

static ps_status
blocks_run(const ps_blocks *b, const ps_exec *exec, ps_report *report)
{
    const ps_fp_mode mode = ps_fp_mode_enter();
    const ps_status status = ps_cpu_blocks_run(b, exec, report);

    ps_fp_mode_leave(mode);
    return status;
}

static ps_status
rates(const ps_rates *r, const ps_exec *exec)
{
    const ps_fp_mode mode = ps_fp_mode_enter();
    const ps_status status = ps_cpu_rates(r, exec);

    ps_fp_mode_leave(mode);
    return status;
}

static const ps_number_entries entries = {
    .recurrence_work = ps_cpu_recurrence_work,
    .recurrence = recurrence,
    .blocks_store = ps_cpu_blocks_store,
    .blocks_work = ps_cpu_blocks_work,
    .blocks_run = blocks_run,
    .rates = rates,
};

const ps_number_entries *
ps_number_entries_get(void)
{
    return &entries;
}
