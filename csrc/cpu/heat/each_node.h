/* each_node.h - loops over the nodes of a row: by vectors, by vectors of four for what is
 * left, and then one by one.
 *
 * FORMULA(AT) is a statement for node i, where AT(p, i) is element i of p. AT_VECTOR(p,
 * i) is LANES elements and AT_FOUR(p, i) is four: nodes and four. A row of
 * a coarse level has few nodes, and one that ends after a vector would spend most of its
 * time on single nodes.
 */
#ifndef PS_CPU_EACH_NODE_H
#define PS_CPU_EACH_NODE_H

#define AT_VECTOR(p, i) (*(nodes *)((p) + (i)))
#define AT_FOUR(p, i) (*(four *)((p) + (i)))
#define AT_ONE(p, i) ((p)[i])
#define FOR_NODES(count, FORMULA)                       \
    do {                                                \
        int64_t i = 0;                                  \
                                                        \
        for (; i + LANES <= (count); i += LANES) {      \
            FORMULA(AT_VECTOR);                         \
        }                                               \
        for (; LANES > 4 && i + 4 <= (count); i += 4) { \
            FORMULA(AT_FOUR);                           \
        }                                               \
        for (; i < (count); i++) {                      \
            FORMULA(AT_ONE);                            \
        }                                               \
    } while (0)

/* The same for a FORMULA that does not read what it writes. The last vector ends with the
 * row and overlaps the vector before it, so that its first nodes are computed twice. */
#define FOR_NODES_OVERLAPPED(count, FORMULA)                    \
    do {                                                        \
        const int64_t lanes = (count) >= LANES ? LANES : 4;     \
        int64_t i = 0;                                          \
                                                                \
        if ((count) >= LANES) {                                 \
            for (; i < (count); i += lanes) {                   \
                i = i + lanes <= (count) ? i : (count) - lanes; \
                FORMULA(AT_VECTOR);                             \
            }                                                   \
        }                                                       \
        else if (LANES > 4 && (count) >= 4) {                   \
            for (; i < (count); i += lanes) {                   \
                i = i + lanes <= (count) ? i : (count) - lanes; \
                FORMULA(AT_FOUR);                               \
            }                                                   \
        }                                                       \
        for (; i < (count); i++) {                              \
            FORMULA(AT_ONE);                                    \
        }                                                       \
    } while (0)

#endif
