/* ps_part.h - systems that are divided into parts of consecutive rows, each on a device
 * of its own. Parts that share a device wait for each other there, on at most an equal share
 * of its multiprocessors.
 *
 * A part eliminates its rows in terms of y_left, the last unknown of the part before, y,
 * its own last unknown, and x_next, the first unknown of the part after:
 *
 *   x_first = g - l y_left - u y
 *   a y_left + b y + c x_next = d
 *
 * The parts of a system send these numbers to each other. Each part then solves for all
 * y, a tridiagonal system of one row per part, and substitutes. Without row exchanges:
 * stable for diagonally dominant systems. Wang 1981.
 *
 * Parts whose devices can write into each other's memory use mailboxes in the memory of
 * the receiver. Everything happens in one kernel: five words per unknown, as on one
 * device. Other parts make two calls, and eliminate in both of them: nine words. The
 * first one, PS_PART_SEND, writes the numbers of the part to memory of its device; the
 * caller brings them to the devices of the other parts; the second one,
 * PS_PART_RECEIVE, reads those of the others.
 *
 * The calls for one batch are collective: every part makes the same calls in the same
 * order, with the same systems, dtype and count, on one stream. A call does not use the
 * mailbox of the call before, so that a part may be one call ahead of another.
 *
 * With a key, the hash of what must be equal in a call of all parts, a message is taken
 * only in a call of the same key. With logs, a part also finds that another part makes a
 * call of another key, or gave up: it then gives up at once, not after its patience.
 * Two steps have no systems: PS_PART_LEAVE says that this part makes a call of another
 * kind, and PS_PART_END, outside of all streams, that a call of this part gives up.
 *
 * Two further steps are a barrier of streams, for what the parts copy into each other's
 * memory. PS_PART_BARRIER: what the stream of a part has after it begins when all that the
 * streams of all parts had before it is complete; the host waits for nothing. Its key is the
 * number of the round, from 1 on. PS_PART_FAIL: this part takes part in no round up to that
 * of the key, and the others do not wait for it.
 */
#ifndef PS_PART_H
#define PS_PART_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PS_MOST_PARTS = 8, PS_PART_CLOCK_BYTES = 64, PS_PART_LOG_BYTES = 256 };

/* `late` of the clock is PS_PART_ELSEWHERE + 1 + the part if this part makes another call. */
enum { PS_PART_ELSEWHERE = 256 };

/* The mailbox of a barrier: for each part a slot of so many bytes. */
enum { PS_PART_SLOT_BYTES = 16 };

typedef enum {
    PS_PART_WHOLE,
    PS_PART_SEND,
    PS_PART_RECEIVE,
    PS_PART_LEAVE,
    PS_PART_END,
    PS_PART_BARRIER,
    PS_PART_FAIL,
    PS_PART_STEPS
} ps_part_step;

/* What a part notes of its calls, in PS_PART_CLOCK_BYTES that are zero before the first
 * call. After a call the host reads them, and info and marks only if a system failed. */
typedef struct {
    uint64_t calls;   /* completed calls */
    uint32_t blocks;  /* of the current call, which are complete */
    uint32_t late;    /* 1 + the part that did not answer, or 0 */
    uint32_t tickets; /* work that the blocks have drawn in the current call */
    uint32_t failed;  /* lower half of the number of the last call, counted from 1, in
                         which info or marks of a system are not 0 */
    void *answer; /* null, or memory of the host that gets calls, late and failed at the
                         end of a call, as a ps_part_clock */
} ps_part_clock;

/* What a part knows of the calls of all parts, of all mailboxes, in PS_PART_LOG_BYTES of its
 * device that are zero before the first call. */
typedef struct {
    uint64_t calls, unused; /* completed calls of this part */
    struct {
        uint64_t key, call; /* of the last call that the part has begun; key 0: none */
    } of_part[PS_MOST_PARTS];
} ps_part_log;

struct ps_part {
    /* The rows of this part. PS_PERIODIC: the whole systems are periodic. lower[0] of a
     * part multiplies y_left and upper[rows-1] multiplies x_next, except at the ends of
     * systems that are not periodic, where they are ignored. info counts the rows of the
     * whole system; it is -(1 + k) if part k did not answer in time, and x is then
     * unspecified in all systems. */
    ps_tridiag t;
    int32_t part, count; /* which one, and of how many */
    int32_t sharing; /* number of parts on the device of this part, also this one; or 0 */
    /* The number of the last row of each part, for info. Numbers may be left out after the
     * rows of a part, whose last row then has the number of the last one left out. */
    int32_t last_row[PS_MOST_PARTS];
    ps_part_step step;
    /* PS_PART_WHOLE: of each part, zero before the first call. PS_PART_SEND: that of
     * this part gets its numbers, and the others are not used. PS_PART_RECEIVE: those of
     * the other parts have their numbers. Barriers: of each part, zero before round 1. */
    void *mailbox[PS_MOST_PARTS];
    void *log[PS_MOST_PARTS]; /* of each part: ps_part_log; all null: none */
    uint64_t key;
    void *clock; /* of this part: ps_part_clock. Barriers write `late`, and to the answer
                    `late` and the number of the round in place of `calls` */
    int64_t patience; /* nanoseconds to wait for another part */
    /* Null, or one byte per system: 1, and x is not written, if a row of the whole system
     * is not dominant; else 0. PS_PART_SEND does not write it, but it must be given if
     * PS_PART_RECEIVE is to write it. */
    uint8_t *marks;
};

#ifdef __cplusplus
}
#endif
#endif
