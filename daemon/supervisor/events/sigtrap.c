/*
 * SIGTRAP on overflow (perf_event_open(2), attr.sigtrap) ends a program that does not expect it, whoever's it is: the kernel
 * asks perfd's capabilities, and not those of the client. So it is for root's clients and the configuration, and never on
 * perfd's own tasks.
 */
#include "daemon/supervisor/events/sigtrap.h"

#include <string.h>
#include <unistd.h>

#include "daemon/kernel/task/tasks.h"
#include "daemon/supervisor/events/charges.h"

static bool has_sigtrap(const EventSpec *spec) {
        static const char name[] = "sigtrap";
        const size_t length = sizeof(name) - 1;

        for (size_t i = 0; i < spec->attr.n; i++) {
                const char *text = spec->attr.items[i];

                if (strncmp(text, name, length) == 0 && (text[length] == '\0' || text[length] == '=') &&
                    strcmp(text + length, "=false") != 0)
                        return true;
        }
        return false;
}

/* What a client added is its own, also when it is opened later; a configuration is that of the client who asks for it now. */
static uint32_t uid_of(const Events *s, const EventSpec *spec) {
        if (spec->has_uid)
                return spec->uid;
        return s->settings->loads_own_config ? 0 : events_charged_uid(s);
}

/* Not REFUSED_DENIED: an apply would keep the event pending, and it would be opened later on behalf of nobody. */
int sigtrap_check_client(const Events *s, const EventSpec *spec, Explanation *e) {
        uint32_t uid;

        if (!has_sigtrap(spec))
                return 0;
        uid = uid_of(s, spec);
        if (uid == 0)
                return 0;
        return refuse(e, REFUSED_INVALID, "bad-attr", "only clients of root and the configuration of perfd may set attr sigtrap: "
                "its signal ends programs of others (you are uid %u)", uid);
}

int sigtrap_check_targets(const EventSpec *spec, const TargetSet *targets, Explanation *e) {
        _cleanup_free_ uint32_t *tids = NULL;
        size_t n = 0;
        int r;

        if (!has_sigtrap(spec))
                return 0;
        r = tasks_of_process((uint32_t)getpid(), &tids, &n, e);
        for (size_t i = 0; i < n && r == 0; i++)
                if (target_set_has(targets, tids[i]))
                        r = refuse(e, REFUSED_INVALID, "bad-target", "%s: attr sigtrap on thread %u would end perfd, which it "
                                   "belongs to", spec->name, tids[i]);
        return r;
}
