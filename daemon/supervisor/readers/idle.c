/*
 * Seeing idle CPUs instead of waking them, for streams in the order of time, where the kernel lets us. What it takes is opened
 * while perfd has all the privileges that it was given, and then it denies itself whatever else bpf(2) does, also where the
 * kernel did not let us; root, who stays root, could only pretend to.
 */
#include "daemon/base/log.h"
#include "daemon/kernel/privileges/system-calls.h"
#include "daemon/kernel/task/tasks.h"
#include "daemon/supervisor/readers/readers.h"

#include <string.h>
#include <unistd.h>

void readers_find_idle(Readers *s, uint32_t slot) {
        bool is_wanted = s->idle && s->by_slot[slot].guard == 0; /* else nobody waits for what is seen */
        int r = is_wanted ? idle_cpus_find(s->idle, s->cpus[slot]) : 0;

        if (r < 0)
                log_print_with(LOG_NOTICE, MESSAGE_CPUS_WOKEN, LOG_FIELDS({ "CPU", LOG_NUMBER(s->cpus[slot]) }),
                               "the idle state of CPU %u is not visible, so it is woken: %s", s->cpus[slot], error_text(r));
}

int readers_open_idle(IdleCpus **ret, Explanation *why) {
        _cleanup_free_ uint32_t *cpus = NULL;
        uint32_t most = 0;
        size_t n = 0;
        int r;

        *ret = NULL;
        r = cpus_possible(&cpus, &n, why);
        for (size_t i = 0; i < n; i++)
                most = cpus[i] > most ? cpus[i] : most;
        if (r == 0)
                r = idle_cpus_open(most + 1, ret, why);
        if (r < 0 || geteuid() == 0)
                return r < 0 ? r : 0;
        r = system_calls_end_bpf(); /* also where nothing could be opened: it may be allowed all the same */
        if (r < 0) {
                *ret = idle_cpus_free(*ret);
                (void)refuse(why, REFUSED_DENIED, "no-seccomp", "the use of bpf(2) cannot be restricted to what perfd needs: %s",
                             strerror(-r));
        }
        return 0;
}

void readers_start_idle(Readers *s) {
        for (uint32_t slot = 0; slot < s->n_cpus; slot++)
                if (s->online[slot])
                        readers_find_idle(s, slot);
        s->dispatcher.idle = s->idle;
}
