/* Constants of a condition that no event of the subscription can have: said to who wrote them, and not to whom a rule has them. */
#include "daemon/supervisor/subscriptions/grants.h"
#include "daemon/supervisor/subscriptions/subscription.h"

/* As the client wrote it. */
static const Filter *own_filter(const Subscription *u) {
        return u->grant && (u->grant->where || u->grant->within_where) ? u->grant->own_filter : u->filter;
}

int subscription_check_constants(const Subscriptions *s, const Subscription *u, Explanation *e) {
        const Filter *filter = own_filter(u);
        _cleanup_free_ FilterSubject *subjects = NULL;
        uint32_t n_cpus = 0;

        if (!filter || u->n_routes == 0)
                return 0;
        subjects = calloc(u->n_routes, sizeof(*subjects));
        if (!subjects)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < s->readers->n_cpus; i++)
                if (s->readers->cpus[i] >= n_cpus)
                        n_cpus = s->readers->cpus[i] + 1;
        for (size_t i = 0; i < u->n_routes; i++) {
                const Event *event = u->routes[i].registration->event;

                subjects[i] = (FilterSubject){ .plan = event->plan, .event = event->spec.name };
                if (!event->external) /* whose client says any */
                        subjects[i].n_cpus = n_cpus;
        }
        return filter_check_constants(filter, subjects, u->n_routes, e);
}
