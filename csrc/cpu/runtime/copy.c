/* copy.c - parallel memory copy: the reference bandwidth of the benchmarks. */
#include <string.h>

#include "runtime/copy.h"
#include "runtime/isa.h"
#include "runtime/threads.h"

enum { LINE = 64 };

typedef struct {
    char *to; /* aligned to LINE */
    const char *from;
} task;

static void
copy_lines(void *self, int64_t begin, int64_t end, int thread)
{
    const task *const t = self;

    (void)thread;
    ps_isa_get()->copy(t->to + begin * LINE, t->from + begin * LINE,
                       (size_t)(end - begin) * LINE);
}

ps_status
ps_cpu_copy(void *to, const void *from, size_t bytes, const ps_exec *exec)
{
    const size_t ahead = (LINE - (uintptr_t)to % LINE) % LINE;
    const size_t head = ahead < bytes ? ahead : bytes;
    const size_t lines = (bytes - head) / LINE;
    task t = {(char *)to + head, (const char *)from + head};

    memcpy(to, from, head);
    ps_parallel_for(ps_thread_count_for(exec, (int64_t)(bytes / sizeof(double))),
                    (int64_t)lines, copy_lines, &t);
    memcpy(t.to + lines * LINE, t.from + lines * LINE, bytes - head - lines * LINE);
    return PS_OK;
}
