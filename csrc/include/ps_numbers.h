/* ps_numbers.h - the entries of a backend for linear recurrences, for systems of
 * blocks and of five diagonals, for rates of equations, for products with eigenvectors and
 * for compact differences: a second table, so that a change of its headers compiles its
 * users again and nothing else.
 */
#ifndef PS_NUMBERS_H
#define PS_NUMBERS_H

#include "ps_blocks.h"
#include "ps_differences.h"
#include "ps_modes.h"
#include "ps_rates.h"
#include "ps_recurrence.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rules are those of ps_backend. Every entry is null if a backend lacks them. */
typedef struct {
    ps_status (*recurrence_work)(const ps_recurrence *r, const ps_exec *exec,
                                 size_t *bytes);
    ps_status (*recurrence)(const ps_recurrence *r, const ps_exec *exec);

    /* blocks_store: bytes of the factors. */
    ps_status (*blocks_store)(const ps_blocks *b, const ps_exec *exec, size_t *bytes);
    ps_status (*blocks_work)(const ps_blocks *b, const ps_exec *exec, size_t *bytes);
    ps_status (*blocks_run)(const ps_blocks *b, const ps_exec *exec, ps_report *report);

    ps_status (*rates)(const ps_rates *r, const ps_exec *exec);

    ps_status (*modes)(const ps_modes *p,
                       const ps_exec *exec); /* null: of the host only */

    /* differences() of any dtype on a host and of real numbers on a device, without workspace;
     * difference_solve() solves with factors of one matrix each and PS_PIVOT_NEVER. */
    ps_status (*differences)(const ps_differences *d, const ps_exec *exec);
    ps_status (*difference_solve_work)(ps_difference_factors f, const ps_differences *d,
                                       const ps_exec *exec, size_t *bytes);
    ps_status (*difference_solve)(ps_difference_factors f, const ps_differences *d,
                                  const ps_exec *exec);
} ps_number_entries;

const ps_number_entries *ps_number_entries_get(void);

#ifdef __cplusplus
}
#endif
#endif
