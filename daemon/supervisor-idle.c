/*
 * Seeing idle CPUs instead of waking them, for streams in the order of time, where the kernel lets us.
 */
#include "daemon/base/log.h"
#include "daemon/supervisor.h"

#include <string.h>

void supervisor_find_idle(Supervisor *s, uint32_t slot) {
        bool is_wanted = s->idle && s->readers[slot].guard == 0; /* else nobody waits for what is seen */
        int r = is_wanted ? idle_cpus_find(s->idle, s->cpus[slot]) : 0;

        if (r < 0)
                log_print(LOG_NOTICE, "CPU %u is woken where others could be seen to be idle: %s", s->cpus[slot], strerror(-r));
}

int supervisor_start_idle(Supervisor *s) {
        Explanation e = EXPLANATION_NULL;
        uint32_t most = 0;
        int r;

        for (size_t slot = 0; slot < s->n_cpus; slot++)
                most = s->cpus[slot] > most ? s->cpus[slot] : most;
        r = idle_cpus_open(most + 1, &s->idle, &e);
        if (r < 0)
                return r;
        if (r > 0)
                log_print(LOG_INFO, "idle CPUs are woken by streams in the order of time: %s", e.text);
        for (uint32_t slot = 0; slot < s->n_cpus; slot++)
                if (s->online[slot])
                        supervisor_find_idle(s, slot);
        s->dispatcher.idle = s->idle;
        return 0;
}
