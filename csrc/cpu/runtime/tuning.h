/* tuning.h - the numbers of the CPU backend that were chosen for speed.
 *
 * Each states the measurement that set it, with the section of docs/designs.md where that
 * has one. "2 and 8: 0.98, 1.03 (0.9 to 1.1)" means: with the value 2 the cases of tools/ab.py
 * that the number concerns take 0.98 of the time with the present value in the mean, with 8 1.03,
 * single ones of both 0.9 to 1.1. Numbers marked "bits" change the rounding errors of results; all
 * others change the time alone.
 */
#ifndef PS_CPU_RUNTIME_TUNING_H
#define PS_CPU_RUNTIME_TUNING_H

/* -- Threads (runtime/threads.c) -- */
enum {
    /* Blocks into which the share of a thread is divided, for others to take. With other
     * processes, two threads from memory: 8 and 32 blocks 1.06 (0.98 to 1.35), 1.03 (0.93 to
     * 1.24). */
    PS_SHARE_BLOCKS = 16,

    /* ns that a thread waits for another one before it sleeps, and pauses between two
     * readings of the clock (1 to 5 microseconds on x86-64). Loops of one call follow each
     * other within this time, while waking a worker of a virtual machine takes 50
     * microseconds: compared with 3 microseconds of polling, a step of the cylinder on
     * 161 x 801 nodes takes 0.75 of the time with 2 threads, and one of HeatADI implicit
     * on 512^2 nodes 0.73. */
    PS_SPIN_NS = 100000,
    PS_SPINS = 100,

    /* Workers that the calling thread wakes, 3 to 5 microseconds each, before it starts
     * its share; each worker that starts wakes two more. */
    PS_WAKES = 4,

    /* Least number of unknowns per thread: 50 to 100 microseconds of work, several times
     * the time to wake a worker (benchmarks/threads.py). The smaller limit holds if the
     * caller sets the number of threads. */
    PS_UNKNOWNS_PER_THREAD = 32768,
    PS_UNKNOWNS_IF_REQUESTED = 8192,

    /* ns: longest loop that judge() compares with one thread; the scheduler lets the
     * calling thread run for about this time without interruption. */
    PS_LONG_LOOP = 6000000,

    /* Pause without teams per time lost by a slow team, so that the loss is at most 1/20, and
     * its limit in ns. With two busy loops and other processes, four solves with two threads
     * take 1.04 of the time with one in the mean; with 10 and 40 0.99 and 1.17, with limits of 50
     * and 800 ms 1.29 and 1.05, where 0.3 are noise. */
    PS_REPAYMENT = 20,
    PS_LONGEST_PAUSE = 200000000
};

/* -- Tiles, groups and bands of a batch (lines/tiles.c, lines/group.inc) -- */
enum {
    /* Rows of a block. A block holds 4 words (lower, diag, upper, rhs) of this many rows
     * for all lanes and stays in the first-level cache. */
    PS_BLOCK_ROWS = 16,

    /* Most tiles of a group and of a band. A row of a group of float64 is 512 bytes of
     * each operand, at AVX-512; longer runs, up to 4 KB, gained a tenth in a loop without
     * arithmetic (Neighbouring systems). */
    PS_GROUP_TILES = 8,
    PS_BAND_TILES = 16,

    /* Runs of fewer tiles are joined into one run. 2 and 8: 0.98, 1.03 of the time. */
    PS_RUN_TILES = 4,

    /* Runs of fewer tiles are divided without alignment of x, because the alignment may
     * cost an additional tile. 8 and 512: 0.98, 0.99 of the time. */
    PS_LONG_RUN_TILES = 64,

    /* Eliminated rows that fit in a second-level and a third-level cache (the former
     * exceeds a power of two because one additional row may be kept). 13 << 16: open systems
     * of 600 to 1000 rows from memory 0.82 to 1.09. */
    PS_GROUP_BYTES = 9 << 16,
    PS_FAR_BYTES = 1 << 24,

    /* If adjacent systems are adjacent in memory, a group has at least this many tiles,
     * or a whole short run, even beyond the second-level cache, for the sake of long
     * memory runs. 1500 to 4096 rows from memory: 2 tiles 1.2 to 2.3, 6 tiles 0.9 to 1.06, 8 tiles
     * 0.94 to 1.1. */
    PS_STRIDED_TILES = 4,

    /* Adjacent systems of at least so many rows that are periodic or have row exchanges have groups of
     * so many tiles, if their right-hand sides have more than PS_PAIR_BYTES, even beyond the
     * second-level cache, and if the eliminated rows have at most so many bytes. 8 and 16 lanes, 32 to
     * 2000 rows from memory: 0.82 to 1.02 of the time of the tiles that fit in that cache, and 0.91
     * to 1.0 of the time of 8 tiles. 16 rows of periodic systems take 1.1, 4096 rows of 512 systems
     * 1.03 to 1.1, 4000 rows of 500 systems 0.95; open systems without row exchanges 0.9 to 1.15. */
    PS_FAR_TILES = 7,
    PS_FAR_TILES_ROWS = 32,
    PS_FAR_GROUP_BYTES = 1 << 22,

    /* Otherwise it has at most this many, which overlap their recurrences: one tile takes
     * a tenth to a third more time (Kept factors of own matrices). More tiles would only
     * add memory streams. */
    PS_CONTIGUOUS_TILES = 2,

    /* Contiguous systems of more rows are eliminated one tile at a time: a fifth to a
     * third less time than two, whose eliminated rows do not fit the second-level cache
     * (Contiguous systems). Periodic systems, if x has more than so many bytes: 700 to
     * 2048 rows of float32 take 0.74 to 0.92 of the time, 1024 rows of float64 0.99 to
     * 1.0, 2048 rows 0.90 to 0.94; in cache 700 rows of float64 take 1.1. Half as
     * many rows of 16 lanes from memory: pairs of 500 and 512 rows of float32 take 1.2 to 1.6
     * of the time of AVX2, one tile at a time 0.9 to 1.0 from 700 rows on. */
    PS_PAIR_ROWS = 512,
    PS_PAIR_BYTES = 1 << 22,
    PS_PAIR_PERIODIC_ROWS = 1023,

    /* Rows of contiguous systems of float32 in memory beyond which vectors have at most 8
     * lanes: 2^21 unknowns with 16 lanes take 1.1 of the time of AVX2 at 3000 rows, 1.3 at
     * 4096; with row exchanges for all 1.0 at 64 rows, 1.1 to 1.5 beyond 256; with kept
     * factors 1.35 at 32768 rows, and 0.8 to 1.0 along axis 0, which a factor does not
     * know. Other dtypes and systems in cache take 0.6 to 1.05. */
    PS_WIDE_ROWS = 2048,
    PS_WIDE_PIVOTED_ROWS = 255,
    PS_WIDE_FACTOR_ROWS = 8192,

    /* The same of complex systems with row exchanges for all that are one tile of the widest
     * vectors, contiguous or adjacent: two tiles of AVX2 overlap their divisions, while the
     * eliminated rows come from memory. Contiguous ones of 16384 rows and more take 1.0 to
     * 1.5 of the time with AVX-512, 8192 rows 0.75 to 0.9; adjacent ones of 65536 rows 1.2
     * to 1.3, of 32768 0.65 to 0.9, of 131072 0.93 to 1.0; more systems 0.75 to 1.2. */
    PS_WIDE_COMPLEX_ROWS = 12288,
    PS_WIDE_COMPLEX_COLUMNS = 49152,

    /* Bytes of the rows of a band of a factor: most of a second-level cache if adjacent
     * systems are adjacent in memory, a first-level cache if systems are contiguous. With
     * twice the first number, solves of 3000 and 4096 rows in memory take 1.1 to 1.5 times
     * as long (AVX2). Half of it changes nothing for 512 to 2048 rows.
     */
    PS_STRIDED_BAND_BYTES = 1 << 20,
    PS_CONTIGUOUS_BAND_BYTES = 1 << 14,

    /* Approximate number of unknowns between two calls of exec->poll: about a millisecond
     * on one thread. */
    PS_ROWS_BETWEEN_POLLS = 1 << 19,

    /* Right-hand sides of each of several matrices from which on the matrices of a group
     * are eliminated once for all of them. From memory, one thread, float64, columns of 75
     * rows: 2, 3 and 10 take 0.77, 0.69 and 0.48 of the time of as many solves if systems
     * are adjacent, 1.16, 0.85 and 0.60 if they are contiguous. */
    PS_STRIDED_SIDES = 2,
    PS_CONTIGUOUS_SIDES = 3,

    /* Larger outputs are written with non-temporal stores: 16 and 32 MB take 0.9. */
    PS_STREAM_BYTES = 1 << 23,

    /* The same of own matrices, whose words leave no room for x in a third-level cache of 32
     * MB: from 4.5 to 8 MB solves take 0.72 to 0.92 of the time, with kept factors 0.62 to 1.05,
     * 3 MB 0.7 to 1.02; with one matrix for all 0.9 to 1.4. */
    PS_STREAM_OWN_BYTES = 1 << 22,

    /* Bytes of a line that are stored together: a run of stores uses the memory bandwidth
     * better than scattered cache lines. 256 and 1024: 1.01 (0.94 to 1.18), 1.00 (0.91 to 1.08). */
    PS_STAGE_BYTES = 512,

    /* Tiles that are loaded together in an elimination of periodic systems with row
     * exchanges, and those of them whose recurrences overlap. 2: 1.05 (from memory 1.1 to 1.2), 8: 1.01. */
    PS_FOLDED_TILES = 4
};
#define PS_FOLDED_WIDTH PS_BLOCK_TEAM_TILES

/* Tiles whose recurrences overlap: as many as registers hold. Two to four hide a latency
 * of 21 cycles a row (Arithmetic and memory access overlap only partly). A unit with
 * PS_FEW_LINES serves few long systems, a tile at most, and any others only on processors
 * that lack the other instruction sets. */
#ifdef PS_FEW_LINES
#define PS_TEAM_TILES 1
#else
#define PS_TEAM_TILES (PS_VECTOR_BYTES == 64 ? 4 : 2)
#endif

/* The same for rows that are read by blocks. Two tiles instead of 4 remove 0.2 MB (AVX-512): complex
 * solves take 0.98 of the time in the mean, but open ones of complex128 without tests of dominance would
 * take 1.05 to 1.09 along axis 0, with row exchanges for all 1.03 to 1.05; real ones, which read rows in
 * place there, 1.05 to 1.27. Complex substitutions overlap by themselves: teams of 2 take up to 1.1 of
 * the time along axis 0. */
#define PS_BLOCK_TEAM_TILES (PS_TEAM_TILES < 2 ? PS_TEAM_TILES : 2)

/* -- Prefetches (lines/prefetch.h, prefetch.inc) -- */
enum {
    /* Adjacent systems: rows between a prefetch and the load, in direct solves, in bands
     * of factors and in chunks of long systems. From memory: 4 and 16 rows 1.04 (1.0 to 1.1), 1.00
     * (0.95 to 1.14) of direct solves; 6 and 24 rows 1.02, 0.99 (0.86 to 1.13) of factors; 4 and 16
     * rows of chunks 1.02, 1.01 (0.98 to 1.05). */
    PS_ROWS_AHEAD = 8,
    PS_BAND_AHEAD = 12,
    PS_CHUNK_AHEAD = 8,

    /* Contiguous lines: approximate bytes of a line that are prefetched one after the
     * other. Runs of at least 1 KB overlap with arithmetic (Arithmetic and memory access
     * overlap only partly). */
    PS_PIECE_BYTES = 4096,

    /* Vectors of a run that are prefetched at once. One cache line of every word at a
     * time instead took 1.05 to 1.2 of the time of contiguous systems in memory, runs of
     * 16 rows 1.35. */
    PS_RUN_VECTORS = 4,

    /* Vectors of rows ahead if one tile is transposed between the rows of the
     * elimination. 2 and 8: 0.99, 1.01. */
    PS_NEAR_VECTORS = 4
};

/* -- Factors (lines/factor) -- */
enum {
    /* Largest band whose y are kept between the sweeps: it fits in a second-level
     * cache, as PS_GROUP_BYTES. */
    PS_BAND_KEPT_BYTES = 9 << 18,

    /* Size of a chunk of rows of a larger band, of which y is computed again. Half and twice
     * as many bytes: 1.00 (0.98 to 1.04), 0.99 (0.95 to 1.06). */
    PS_BAND_CHUNK_BYTES = 1 << 14,

    /* Largest band whose words are prefetched, and the smallest store from which they
     * are. 4096 contiguous systems of 512 rows take 3.2 instead of 4.7 ms, of 4096 rows
     * 2.9 instead of 4.7 ms (Kept factors of own matrices). The lines of 512^2 nodes in
     * float32, 3.1 MB of words between other fields: a V-cycle takes 0.92 of its time.
     * Periodic systems of complex128 with stores of 4 to 6 MB, solved again and again from
     * a third-level cache, took 1.15. */
    PS_BAND_WORDS_BYTES = 1 << 20,
    PS_BAND_STORE_BYTES = 5 << 19,
    PS_BAND_COMPLEX_STORE_BYTES = 1 << 23,

    /* Rows between a prefetch and the load of the words of own matrices: in bands of
     * adjacent systems, and in contiguous lines whose words are not prefetched a band
     * ahead, during elimination and, backwards, during substitution. From memory, with AVX-512:
     * without it 1.05 to 1.5 of the time along axis 0, 1.1 to 1.2 for 64 lines of 32768 rows;
     * 12 rows ahead 1.04. Such lines with 8 rows ahead in both, and the words of the substitution
     * also in the elimination, which leave the caches before their use: 1.07 to 1.16 (float64);
     * 8 and 32 rows 1.05. */
    PS_WORDS_AHEAD = 4,
    PS_LINE_WORDS_AHEAD = 16,
    PS_LINE_WORDS_BACK = 64,

    /* Systems of fewer rows are as fast with one system per lane. Bits. */
    PS_LONG_FACTOR_ROWS = 1 << 17
};

/* -- Long systems (lines/partition). All of these numbers but those about tiles, prefetch
 * and threads change bits. -- */
enum {
    /* Longest system, in bytes of one operand, that "auto" solves with one system per
     * lane: two words per row and lane then fit in a second-level cache. */
    PS_LANE_BYTES = 32768,

    /* Rows of a chunk: a lane width of chunks is a page of each operand. Chunks of 264
     * rows took 1.2 to 1.6 times as long (Long systems). */
    PS_CHUNK_ROWS = 64,

    /* A system that would have fewer chunks has so many, if they have at least so many
     * rows. 100 to 600 rows: 8 chunks take 0.84 to 1.04 of the time, 32 chunks 1.14 to 1.54;
     * 32 rows in chunks of 2 1.1 to 1.4, of 8 1.00. */
    PS_FEW_CHUNKS = 16,
    PS_LEAST_CHUNK_ROWS = 4,

    /* Reduced systems of so many rows are divided again. 128, 2048: 1.01, 1.02. */
    PS_MANY_CHUNKS = 512,

    /* Tiles of a group if fewer systems than lanes are adjacent: two hide the latency of
     * the elimination; one takes 1.6 times as long, three and four are slower too (Long
     * systems). */
    PS_CHUNK_TILES = 2,

    /* Consecutive groups that one thread takes. Two threads: 2 and 32 groups 1.05, 0.99. */
    PS_CHUNK_STRETCH = 8,

    /* The eliminated rows of a system are kept between the two passes if they take at
     * most this many bytes. 1 MB: up to 1.3 of the time; 16 MB: 1.01. */
    PS_KEPT_BYTES = 1 << 22,

    /* All threads solve one system together if it has at least this many rows. Two threads, 2^16
     * and 2^20 rows: 0.98 (0.76 to 1.03), 1.01 (0.96 to 1.19), with other processes. */
    PS_TEAM_ROWS = 1 << 18,

    /* Tiles of a group of the table of a shared matrix. 2 and 8: 1.01, 1.01 (0.95 to 1.1). */
    PS_TABLE_TILES = 4,

    /* Pairs of a tile of chunks and a right-hand side that are computed together, and
     * those of them whose recurrences overlap. 4 and 16 pairs: 1.03, 0.98 (0.88 to 1.13); 2 of
     * them: 1.01 (0.95 to 1.06). */
    PS_CHUNK_LANES = 8,
    PS_CHUNK_LANES_AT_ONCE = 4,

    /* With row exchanges: rows of a span. The eliminated rows of a few tiles stay in a
     * second-level cache; no power of two, so that the lanes take different sets of it:
     * 512 rows took a third longer (Long pivoted systems). Spans of a system that is not
     * longer than so many spans: 32 and 128: 0.99, 0.99. Tiles of a group: 1 and 4: 1.02, 1.03. */
    PS_SPAN_ROWS = 544,
    PS_SPANS = 64,
    PS_SPAN_TILES = 2,

    /* The eliminated rows of all spans are kept between the two passes if they take at
     * most this many bytes: 2^13 to 2^17 rows of float64 then take 0.64 to 0.85 of the
     * time, 2^18 rows 1.0 to 1.1. This changes no bits. */
    PS_SPAN_KEPT_BYTES = 1 << 23,

    /* Rows of the shortest system that is divided into pieces, if the systems are too few
     * for the lanes; rows of the shortest piece; and rows above a piece from which on it
     * is eliminated (of float64; half as many of float32). The last number decides
     * between order and spans (bits), the others change no bits. */
    PS_PIECES_ROWS = 1 << 12,
    PS_PIECE_ROWS = 512,
    PS_PIECE_LEAD = 128,

    /* Rows from which on a system whose carried rows do not meet is divided into spans
     * (Long pivoted systems): in order one system takes 30 ns a row, in spans 4 to 6;
     * in batches 3 to 5 ns in order. */
    PS_SPANS_ROWS = PS_PIECES_ROWS + 1,

    /* All systems of so many rows are divided into spans. Batches of shorter systems fill
     * the lanes of all threads by themselves; one span per lane is about twice as slow as
     * one system per lane (Long pivoted systems). */
    PS_LONG_PIVOTED_ROWS = 1 << 18,

    /* The same of periodic systems (Long pivoted systems): one system takes 0.1 to 0.4 of
     * the time, adjacent ones 0.75 to 1.1, 8 to 32 contiguous ones 1.05 to 1.3, from
     * 3 * 2^14 rows on at most 1.0. */
    PS_RING_ROWS = 1 << 15
};

/* -- Cyclic reduction (lines/reduction.inc) -- */
enum {
    /* cr-pcr changes to pcr at this many rows, a warp as in its source; pcr-thomas makes so many
     * steps of pcr. 64 systems of 256 rows: 16 and 64 rows take 0.90 and 1.17 of the time, 2 and 4
     * steps 0.85 and 1.15: the less reduction, the faster on a CPU. Bits. */
    PS_PCR_ROWS = 32,
    PS_PCR_STEPS = 3
};

/* -- Recurrences (recurrence.c), blocks (blocks.c) and their derivatives (products.c) -- */
enum {
    /* Rows from which on a line of a recurrence is divided into chunks, the wished number
     * of these, the most rows of one, and the largest number to which values may grow in a
     * chunk whose unit is used, of first and of second order. Rows of chunks are odd
     * multiples of PS_RECURRENCE_UNIT: no row is left over from the squares that are
     * transposed, and the lanes take different sets of the caches. Bits. */
    PS_RECURRENCE_ROWS = 1 << 15, /* 2^17: one line 1.4 to 2.3, four lines 0.53 */
    PS_RECURRENCE_CHUNKS = 128,   /* 64: 0.99 of the time, 256: 1.07 */
    PS_RECURRENCE_CHUNK = 255 * 16,
    PS_RECURRENCE_UNIT = 16,
    PS_RECURRENCE_GROWTH = 4,
    PS_RECURRENCE_GROWTH_2 = 64,

    /* Bytes of the lines whose chunks are computed and joined before those of others: they
     * are read twice, the second time from a second-level cache. 256 KB: 1.00. */
    PS_SLICE_BYTES = 1 << 20,

    /* Bytes of contiguous lines of recurrences from which on the widest vectors are not
     * used: 24 lines of memory and more at a time. 2000 lines of 500 rows of float64: AVX-512
     * takes 1.0 to 1.3 of the time of AVX2, of second order 1.7 to 1.85; in cache 0.7 to 0.8. */
    PS_RECURRENCE_BYTES = 1 << 21,

    /* Bytes of eliminated rows of a tile of blocks up to which the widest vectors are used:
     * they stay in a second-level cache. Blocks of 4 and 1000 rows, beyond this limit: AVX2
     * takes 0.7 of the time of AVX-512. */
    PS_BLOCKS_BYTES = 3 << 18,

    /* Solves with blocks of 2 and more bytes of unknowns do not use the widest vectors either: 2 MB
     * take 1.1 to 1.3 of the time of AVX2, 1 MB 0.8; blocks of 3 and 4 take 0.8 to 0.9. */
    PS_PAIRS_BYTES = 3 << 19,

    /* Numbers of a part of a loop over products. 256 and 16384: 1.00, 1.01. */
    PS_PRODUCTS_PART = 2048
};

/* -- Rates of equations (lines/rates.inc) -- */
enum {
    /* Nodes of a row that are computed together, in twelve buffers. 256: 0.94 to 1.1 of the time
     * on 250^2 to 1000^2 nodes, 1.03 in the mean; 128: 1.06 to 1.17. */
    PS_RATES_BLOCK = 512
};

/* -- Heat conduction (heat) -- */
enum {
    /* Width of a band in bytes, for every instruction set: few lines, so that their rows
     * stay in cache. 512 bytes across x: 1.0 to 1.5 of the time on 100^2 to 512^2 nodes, 1.0 to
     * 1.1 on 1000^2 and more, and 128^3 (AVX-512); 1024: 1.07 to 1.6. Along x 128 and 512: 1.01,
     * 1.03. */
    PS_HEAT_BAND_BYTES = 256,

    /* Bytes of rows that are staged together. 8192 and 32768: 1.04, 0.99. */
    PS_HEAT_CHUNK_BYTES = 16384,

    /* Rows between a prefetch and the load: few, because the first-level cache holds only
     * about a dozen rows whose distance in memory is a power of two. */
    PS_HEAT_AHEAD = 8,

    /* Rows of a block, which has one base in float32. 8 and 32: 1.00, 1.00. Bits. */
    PS_HEAT_BLOCK = 16,

    /* Bytes of the independent maxima of a field. 128, 512 and 1024: 1.0, 1.02 to 1.07, 1.15 to
     * 1.2. */
    PS_HEAT_MAXIMA_BYTES = 256
};

/* -- Flows (flow) -- */
enum {
    /* Cavity: lines whose rows are stored together, which stay in a second-level cache: a
     * multiple of the lanes of every instruction set. 16 and 64: 0.98, 0.98. */
    PS_CAVITY_STORED_LINES = 32,

    /* Cylinder: waves of a group, of which the pitch of the waves is a multiple. 32: 0.97 of
     * the time of a step on 161 x 801 nodes. */
    PS_WAVES = 16,

    /* Its sine transform: intervals of the longest transform that is one product; rows of a
     * matrix that are multiplied together; bytes of a row of a panel of columns. Steps on
     * 161 x 801 nodes with 6 and 24: 1.02, 1.01; with 2 and 8: 1.02, 1.22; with 256: 0.99. The
     * first one: bits. */
    PS_SINE_FEW = 12,
    PS_SINE_ROWS = 4,
    PS_SINE_BYTES = 128
};

/* -- Red-black relaxation (relaxation/relax.c) -- */
enum {
    /* Most iterations of a pass over memory, and bytes that the rows of a tile may use.
     * 4 iterations: 1.1 of the time, 16: 0.98; 1 MB and 16 MB: 1.00. */
    PS_RELAX_ITERATIONS = 8,
    PS_RELAX_TILE_BYTES = 1 << 22
};

/* -- GCEIDD (transport) and splines (spline) -- */
enum {
    /* Bytes of a row of a group of lines, for every instruction set. Rows of 512 bytes
     * take 1.1 times as long on grids of 2048^2 nodes, whose groups then leave the
     * second-level cache. */
    PS_GCEIDD_BYTES = 256,

    /* Tiles of a group whose recurrences overlap, for every instruction set: two take
     * 1.2 times as long at AVX2 and at the baseline. */
    PS_GCEIDD_TEAM = 4,

    /* Rows of lines with constant coefficients between two tests whether the elimination
     * has reached its limit. 4 and 16: 1.00, 1.00. */
    PS_GCEIDD_SETTLING_ROWS = 8,

    /* Splines and rows (knots, pieces or points) of a part: what all splines share is
     * computed once per part; it and the rows of a part stay in the cache. From
     * PS_SPLINE_RUN splines on the inner axis the inner loop runs over splines, otherwise
     * over rows. 200 splines of 400 knots: parts of 128 splines 1.09 to 1.17 along axis 0, of
     * 512 1.00; of 256 rows 1.0 to 1.1, of 1024 1.00; runs of 4 splines 1.0 to 1.4, of 16 1.0 to
     * 1.05. */
    PS_SPLINE_TILE = 256,
    PS_SPLINE_BLOCK = 512,
    PS_SPLINE_RUN = 8,

    /* Differences before a solve: values of a block of lines for each thread, which stay in the
     * cache of the core; systems of a block, tiles of every instruction set; reals of a loop
     * that is vectorized. Six compact derivatives of 2e6 values, one thread: 1 << 15 values 0.98 to
     * 1.09, 1 << 17 0.96 to 1.02; 32 systems 0.96 to 1.04, 128 0.95 to 1.03; 8 reals 0.95 to
     * 1.12, 32 0.97 to 1.04. */
    PS_DIFFERENCE_BLOCK = 1 << 16,
    PS_DIFFERENCE_SYSTEMS = 64,
    PS_DIFFERENCE_RUN = 16
};

#endif
