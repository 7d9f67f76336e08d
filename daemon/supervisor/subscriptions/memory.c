/*
 * What is reserved comes first, and queues get what is left: somebody new, with a ring, is let in also while the queues of
 * those who do not read are full, which become smaller then.
 *
 * The memory that there is for all is the configuration's, or less: what the host and perfd's cgroup have left is looked at
 * when somebody subscribes, each time queues have grown by some megabytes, and when the kernel says that a limit was reached.
 * So perfd drops samples, which it counts, before the kernel ends it. Nothing of this runs while nothing grows.
 */
#include "daemon/supervisor/subscriptions/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/supervisor/subscriptions/subscriptions.h"

#define CONDITIONS_OF_UID ((size_t)4096) /* some 20 us of each sample */
#define CONDITIONS_OF_ALL ((size_t)8192)
#define DECISIONS_OF_UID ((size_t)256) /* up to some 2 us of each sample, of the one thread that has the samples of all CPUs */
#define DECISIONS_OF_ALL ((size_t)512)
#define WAKEUPS_OF_UID ((uint64_t)50000) /* a second: each is a packet, and a system call */
#define WAKEUPS_OF_ALL ((uint64_t)100000)

static size_t at_least_none(int64_t n) {
        return n > 0 ? (size_t)n : 0;
}

static size_t lesser(size_t a, size_t b) {
        return a < b ? a : b;
}

/* What all subscribers may have, by the configuration and by what is there. */
static size_t memory_of_all(const Subscriptions *s) {
        const int64_t room = memory_limits_room(&s->memory.limits);
        const size_t held = s->memory.reserved + queue_account_used(&s->readers->dispatcher.queues);

        if (room == INT64_MAX)
                return s->settings->config->subscriber_memory;
        return lesser(s->settings->config->subscriber_memory, at_least_none((int64_t)held + room));
}

size_t subscriptions_queue_max(const Subscriptions *s) {
        return lesser(s->settings->config->subscriber_memory_per_uid, s->settings->config->subscriber_memory);
}

/* Whether queues hold more by now than they may. */
static bool set_limits(Subscriptions *s, size_t of_all) {
        bool is_short;

        queue_account_set_limit(&s->readers->dispatcher.queues, at_least_none((int64_t)of_all - (int64_t)s->memory.reserved));
        is_short = queue_account_is_short(&s->readers->dispatcher.queues, 0);
        for (UidMemory *m = s->memory.uids; m; m = m->next) {
                const int64_t left = (int64_t)s->settings->config->subscriber_memory_per_uid - (int64_t)m->reserved;

                queue_account_set_limit(&m->queues, at_least_none(left));
                is_short |= queue_account_is_short(&m->queues, 0);
        }
        return is_short;
}

static int update_to(Subscriptions *s, size_t of_all) {
        DispatcherCommand *command;

        if (!set_limits(s, of_all))
                return 0;
        command = calloc(1, sizeof(*command));
        if (!command)
                return error_origin(-ENOMEM);
        command->kind = DISPATCHER_SHED;
        dispatcher_post(&s->readers->dispatcher, command);
        return 0;
}

int subscriptions_update_memory(Subscriptions *s) {
        thread_assert(THREAD_MAIN);
        return update_to(s, memory_of_all(s));
}

static UidMemory *find_uid(const Subscriptions *s, uid_t uid) {
        UidMemory *m = s->memory.uids;

        while (m && m->uid != uid)
                m = m->next;
        return m;
}

static int check_reservation(const Subscriptions *s, uid_t uid, size_t bytes, size_t of_all, Explanation *e) {
        const size_t of_uid = s->settings->config->subscriber_memory_per_uid;
        const UidMemory *m = find_uid(s, uid);
        const size_t has = m ? m->reserved : 0;

        if (uid != 0)
                of_all -= of_all / SHARE_OF_ROOT;
        if (has > of_uid || bytes > of_uid - has)
                return refuse(e, REFUSED_EXHAUSTED, "queue-memory",
                              "%zu bytes for a subscriber: those of uid %u hold %zu of the %zu that subscribers.memory-per-uid "
                              "allows; request a smaller ring or none, or end some "
                              "subscriptions", bytes, (unsigned)uid, has, of_uid);
        if (s->memory.reserved <= of_all && bytes <= of_all - s->memory.reserved)
                return 0;
        return refuse(e, REFUSED_EXHAUSTED, "queue-memory",
                      "%zu bytes for a subscriber: all of them hold %zu of %zu, which is what subscribers.memory (%llu) allows, "
                      "and the memory that this host, perfd's cgroup or its address space has left; request a smaller ring "
                      "or none, or end some subscriptions",
                      bytes, s->memory.reserved, of_all, (unsigned long long)s->settings->config->subscriber_memory);
}

static size_t count_subscribers(const Subscriptions *s, uid_t uid) {
        size_t n = 0;

        for (const SubscriberEntry *a = s->subscribers; a; a = a->next)
                n += a->memory->uid == uid;
        return n;
}

int subscriptions_check_places(const Subscriptions *s, uid_t uid, Explanation *e) {
        const size_t all = s->readers->subscribers_max, of_others = all - all / SHARE_OF_ROOT, of_uid = (all + 1) / 2;

        if (s->readers->n_subscribers >= (uid == 0 ? all : of_others))
                return refuse(e, REFUSED_EXHAUSTED, "too-many-subscribers",
                              "there are %zu subscribers, and subscribers.max allows %zu, %zu of them for uids other than "
                              "root", s->readers->n_subscribers,
                              all, of_others);
        if (uid != 0 && count_subscribers(s, uid) >= of_uid)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-subscribers",
                              "uid %u has %zu subscribers, half of what subscribers.max allows: end some", (unsigned)uid, of_uid);
        return 0;
}

/* The shortest latency, in whole microseconds, that so many wakeups allow. */
static uint64_t possible_usec(uint64_t left) {
        return (NSEC_PER_SEC / NSEC_PER_USEC + left - 1) / left;
}

static int refuse_wakeups(uint64_t wakeups, const char *whose, uint64_t has, uint64_t most, Explanation *e) {
        char possible[96] = "end some subscriptions, or request none";

        if (has < most)
                (void)snprintf(possible, sizeof(possible), "request at least %llu us, or none, or end some subscriptions",
                               (unsigned long long)possible_usec(most - has));
        return refuse(e, REFUSED_EXHAUSTED, "too-many-wakeups",
                      "its latency is up to %llu wakeups a second: the subscribers of %s request %llu, and %llu are allowed, because "
                      "one thread sends to all; %s", (unsigned long long)wakeups, whose, (unsigned long long)has,
                      (unsigned long long)most, possible);
}

int subscriptions_charge_wakeups(const Subscriptions *s, SubscriberEntry *a, nsec_t latency, Explanation *e) {
        const uint64_t wakeups = latency > 0 ? (NSEC_PER_SEC + latency - 1) / latency : 0;
        uint64_t of_uid = 0, of_all = 0;
        char uid[32];

        for (const SubscriberEntry *other = s->subscribers; other; other = other->next) {
                of_all += other->memory->uid != 0 ? other->wakeups : 0;
                of_uid += other->memory->uid == a->memory->uid ? other->wakeups : 0;
        }
        (void)snprintf(uid, sizeof(uid), "uid %u", (unsigned)a->memory->uid);
        if (wakeups > 0 && a->memory->uid != 0 && of_uid + wakeups > WAKEUPS_OF_UID)
                return refuse_wakeups(wakeups, uid, of_uid, WAKEUPS_OF_UID, e);
        if (wakeups > 0 && a->memory->uid != 0 && of_all + wakeups > WAKEUPS_OF_ALL)
                return refuse_wakeups(wakeups, "all uids except root", of_all, WAKEUPS_OF_ALL, e);
        a->wakeups = wakeups;
        return 0;
}

static int check_decision(const Subscriptions *s, const UidMemory *m, size_t cost, Explanation *e) {
        if (cost > DECISIONS_OF_UID - m->decisions)
                return refuse(e, REFUSED_EXHAUSTED, "costly-conditions",
                              "the predicate uses the process (exe, uid, cgroup, container, unit, or comm in the order of "
                              "time), which one thread evaluates for the samples of all CPUs: it costs %zu there, those of the "
                              "subscriptions of uid %u cost %zu, and %zu are allowed; compare less, match the beginning of texts, "
                              "match comm in the order of each CPU, or end some subscriptions", cost, (unsigned)m->uid, m->decisions, DECISIONS_OF_UID);
        if (cost > DECISIONS_OF_ALL - s->memory.decisions)
                return refuse(e, REFUSED_EXHAUSTED, "costly-conditions",
                              "the predicate uses the process (exe, uid, cgroup, container, unit, or comm in the order of "
                              "time), which one thread evaluates for the samples of all CPUs: it costs %zu there, those of all "
                              "subscriptions except root's cost %zu, and %zu are allowed; compare less, match comm in the order of "
                              "each CPU, or try again when others have ended", cost, s->memory.decisions, DECISIONS_OF_ALL);
        return 0;
}

int subscriptions_charge_condition(Subscriptions *s, UidMemory *m, const Filter *f, ConditionCost *ret, Explanation *e) {
        const size_t cost = filter_cost(f), decision = filter_decision_cost(f);
        int r;

        if (m->uid == 0)
                return 0;
        if (cost > CONDITIONS_OF_UID - m->conditions)
                return refuse(e, REFUSED_EXHAUSTED, "costly-conditions",
                              "the predicate costs as much as %zu comparisons of numbers: those of the subscriptions of uid %u "
                              "cost %zu, and %zu are allowed, because all are evaluated for each sample; compare less, match the "
                              "beginning of texts, or end some "
                              "subscriptions", cost, (unsigned)m->uid, m->conditions, CONDITIONS_OF_UID);
        if (cost > CONDITIONS_OF_ALL - s->memory.conditions)
                return refuse(e, REFUSED_EXHAUSTED, "costly-conditions",
                              "the predicate costs as much as %zu comparisons of numbers: those of all subscriptions except "
                              "root's cost %zu, and %zu are allowed, because all are evaluated for each sample; compare less, or "
                              "try again when others have ended", cost, s->memory.conditions, CONDITIONS_OF_ALL);
        r = check_decision(s, m, decision, e);
        if (r != 0)
                return r;
        m->conditions += cost;
        m->decisions += decision;
        s->memory.conditions += cost;
        s->memory.decisions += decision;
        *ret = (ConditionCost){ .readers = cost, .dispatcher = decision };
        return 0;
}

void subscriptions_discharge_condition(Subscriptions *s, UidMemory *m, ConditionCost cost) {
        m->conditions -= cost.readers;
        m->decisions -= cost.dispatcher;
        s->memory.conditions -= cost.readers;
        s->memory.decisions -= cost.dispatcher;
}

int subscriptions_reserve_memory(Subscriptions *s, uid_t uid, size_t bytes, UidMemory **ret, Explanation *e) {
        const size_t of_all = memory_of_all(s);
        UidMemory *m = find_uid(s, uid);
        int r;

        thread_assert(THREAD_MAIN);
        r = check_reservation(s, uid, bytes, of_all, e);
        if (r != 0)
                return r;
        if (!m) {
                m = calloc(1, sizeof(*m));
                if (!m)
                        return error_origin(-ENOMEM);
                m->uid = uid;
                m->next = s->memory.uids;
                s->memory.uids = m;
        }
        m->n_holders++;
        m->reserved += bytes;
        s->memory.reserved += bytes;
        *ret = m;
        return update_to(s, of_all);
}

int subscriptions_release_memory(Subscriptions *s, UidMemory *m, size_t bytes) {
        m->reserved -= bytes;
        s->memory.reserved -= bytes;
        if (--m->n_holders == 0) {
                UidMemory **p = &s->memory.uids;

                while (*p != m)
                        p = &(*p)->next;
                *p = m->next;
                free(m);
        }
        return subscriptions_update_memory(s);
}

/* It is read so that it is heard of again. */
static int on_memory_events(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        char text[512];
        ssize_t n = pread(fd, text, sizeof(text), 0);

        if (n < 0 && errno != EINTR && errno != EAGAIN) { /* the cgroup is gone, and we are in another one */
                log_print(LOG_NOTICE, MESSAGE_MEMORY_UNWATCHED,
                          "the kernel no longer reports when perfd's cgroup has no memory left: %m");
                return error_origin(sd_event_source_set_enabled(source, SD_EVENT_OFF));
        }
        return subscriptions_update_memory(userdata);
}

int subscriptions_start_memory(Subscriptions *s) {
        char text[512];
        int r = memory_limits_find("", &s->memory.limits);

        if (r < 0)
                return r;
        s->memory.events_fd = memory_limits_watch(&s->memory.limits);
        if (s->memory.events_fd >= 0 && pread(s->memory.events_fd, text, sizeof(text), 0) >= 0) {
                r = error_origin(sd_event_add_io(s->operations->event, NULL, s->memory.events_fd, EPOLLPRI, on_memory_events, s));
                if (r < 0)
                        return r;
        }
        return subscriptions_update_memory(s);
}

void subscriptions_free_memory(Subscriptions *s) {
        for (UidMemory *next; s->memory.uids; s->memory.uids = next) {
                next = s->memory.uids->next;
                free(s->memory.uids);
        }
        memory_limits_deinit(&s->memory.limits);
        s->memory.events_fd = close_fd(s->memory.events_fd);
}
