/* cores.c - the number of processors that this process may use, and of threads. */
#define _GNU_SOURCE      /* Linux: sched_getaffinity */
#define _DARWIN_C_SOURCE /* macOS: _SC_NPROCESSORS_ONLN */

#ifdef __linux__
#include <sched.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/threads.h"

enum { PATH = 4096 };

/* Read at most two numbers from a file; a word that is no number, such as "max", gives
 * -1. Returns the count. */
static int
read_numbers(const char *path, long numbers[2])
{
    FILE *const file = fopen(path, "r");
    char word[2][32] = {"", ""};

    if (file == NULL) {
        return 0;
    }
    const int count = fscanf(file, "%31s %31s", word[0], word[1]);
    fclose(file);
    for (int k = 0; k < count; k++) {
        char *end;

        numbers[k] = strtol(word[k], &end, 10);
        if (*end != '\0') {
            numbers[k] = -1;
        }
    }
    return count < 0 ? 0 : count;
}

/* The quota of one cgroup in processors, rounded up; 0 for none. Version 2 stores quota
 * and period in cpu.max, version 1 in one file each. */
static int
quota_of(const char *folder, int version)
{
    char path[PATH + 32];
    long quota[2] = {-1, -1};

    if (version == 2) {
        snprintf(path, sizeof path, "%s/cpu.max", folder);
        if (read_numbers(path, quota) != 2) {
            return 0;
        }
    }
    else {
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if (read_numbers(path, quota) != 1) {
            return 0;
        }
        quota[1] = quota[0];
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        if (read_numbers(path, quota) != 1) {
            return 0;
        }
    }
    if (quota[0] <= 0 || quota[1] <= 0) {
        return 0;
    }
    const long cores = (quota[0] - 1) / quota[1] + 1;
    return cores < 1 << 20 ? (int)cores : 1 << 20;
}

/* The smallest quota of a cgroup and its ancestors up to the mount point; 0 for none. In
 * a container the mount point may be the container's cgroup while `group` is the path on
 * the host, which does not exist there; missing folders have no quota. */
static int
quota_contiguous(const char *mount, const char *group, int version)
{
    char folder[PATH];
    const size_t top = strlen(mount);
    int least = 0;

    if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= PATH) {
        return 0;
    }
    for (;;) {
        const int quota = quota_of(folder, version);

        if (quota > 0 && (least == 0 || quota < least)) {
            least = quota;
        }
        char *const slash = strrchr(folder, '/');
        if (strlen(folder) <= top || slash == NULL || slash < folder + top) {
            return least;
        }
        *slash = '\0';
    }
}

/* Whether a list like "cpu,cpuacct" names the controller cpu. */
static int
names_cpu(char *controllers)
{
    for (char *word = strtok(controllers, ","); word != NULL; word = strtok(NULL, ",")) {
        if (strcmp(word, "cpu") == 0) {
            return 1;
        }
    }
    return 0;
}

int
ps_cgroup_cores(const char *cgroups, const char *mount)
{
    FILE *const file = fopen(cgroups, "r");
    char line[PATH], root[PATH];
    int least = 0;

    /* Lines are hierarchy:controllers:path; controllers is empty in version 2. */
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *const controllers = strchr(line, ':');
        char *const path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        int quota = 0;

        if (path == NULL) {
            continue;
        }
        *path = '\0';
        path[1 + strcspn(path + 1, "\n")] = '\0';
        if (controllers[1] == '\0') {
            quota = quota_contiguous(mount, path + 1, 2);
        }
        else {
            const int fits = snprintf(root, sizeof root, "%s/%s", mount,
                                      controllers + 1) < (int)sizeof root;

            if (names_cpu(controllers + 1) && fits) {
                quota = quota_contiguous(root, path + 1, 1);
            }
        }
        if (quota > 0 && (least == 0 || quota < least)) {
            least = quota;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return least;
}

/* Number of processors in the affinity mask of this thread, or of the machine. */
static int
allowed_cores(void)
{
#ifdef __linux__
    for (size_t most = 1024; most <= 1 << 16; most *= 4) {
        cpu_set_t *const set = CPU_ALLOC(most);
        const size_t bytes = CPU_ALLOC_SIZE(most);

        if (set == NULL) {
            break;
        }
        const int failed = sched_getaffinity(0, bytes, set);
        const int count = failed ? 0 : CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
        if (count > 0) {
            return count;
        }
    }
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);

    return online < 1 ? 1 : online < 1 << 20 ? (int)online : 1 << 20;
}

int
ps_usable_cores(void)
{
    const int cores = allowed_cores();
    const int quota = ps_cgroup_cores("/proc/self/cgroup", "/sys/fs/cgroup");

    return quota > 0 && quota < cores ? quota : cores;
}

/* The number at the start of an environment variable, followed by the end or a comma
 * (OMP_NUM_THREADS lists one number per nesting level); 0 if there is none. */
static long
number_in(const char *name)
{
    const char *const text = getenv(name);
    char *end;

    if (text == NULL || *text < '0' || *text > '9') {
        return 0;
    }
    const long number = strtol(text, &end, 10);
    return *end == '\0' || *end == ',' ? number : 0;
}

int
ps_wanted_threads(void)
{
    const int cores = ps_usable_cores();
    const long own = number_in("PYSOLVERS_NUM_THREADS");
    const long wanted = own > 0 ? own : number_in("OMP_NUM_THREADS");

    return wanted > 0 && wanted < cores ? (int)wanted : cores;
}
