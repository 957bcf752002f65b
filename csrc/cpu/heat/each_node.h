/* each_node.h - loops over the nodes of a row, by vectors and then one by one.
 *
 * FORMULA(AT) is a statement for node i, where AT(p, i) is element i of p. AT_VECTOR(p,
 * i) is LANES elements: the vectors are PS_FN(nodes).
 */
#ifndef PS_CPU_EACH_NODE_H
#define PS_CPU_EACH_NODE_H

#define AT_VECTOR(p, i) (*(PS_FN(nodes) *)((p) + (i)))
#define AT_ONE(p, i) ((p)[i])
#define FOR_NODES(count, FORMULA)                                \
    do {                                                         \
        int64_t i = 0;                                           \
                                                                 \
        for (; i + PS_FN(LANES) <= (count); i += PS_FN(LANES)) { \
            FORMULA(AT_VECTOR);                                  \
        }                                                        \
        for (; i < (count); i++) {                               \
            FORMULA(AT_ONE);                                     \
        }                                                        \
    } while (0)

#endif
