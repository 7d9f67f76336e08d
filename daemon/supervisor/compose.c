/* The parts, and what each of them knows: those below it, and by hooks what those above have to say. */
#include "daemon/supervisor/supervisor.h"

#include "daemon/supervisor/events/external.h"
#include "daemon/supervisor/events/inherited-probes.h"
#include "daemon/supervisor/readers/budgets.h"
#include "daemon/supervisor/streams/snapshot.h"

/* ---- what readers need of those above ------------------------------------------------------------------------------ */

static int build_snapshot(void *userdata, Snapshot **ret) {
        Supervisor *s = userdata;

        return streams_build_snapshot(&s->streams, ret);
}

static bool changes_over(const void *userdata) {
        const Supervisor *s = userdata;

        return streams_changes_over(&s->streams);
}

static void judge_probes(void *userdata) {
        Supervisor *s = userdata;

        events_mark_inherited_probes(&s->events);
}

static void on_cut(void *userdata) {
        Supervisor *s = userdata;

        events_settle_external(&s->events);
}

static void on_published(void *userdata) {
        Supervisor *s = userdata;

        streams_note_published(&s->streams);
}

/* ---- the parts ----------------------------------------------------------------------------------------------------- */

void supervisor_compose(Supervisor *s) {
        s->operations.closer = &s->closer;
        s->readers.settings = &s->settings;
        s->readers.host = &s->host;
        s->readers.operations = &s->operations;
        s->readers.charged = BUDGET_OF_REQUEST;
        s->operations.postpones = readers_postpone;
        s->operations.postponer = &s->readers;
        s->readers.loss_bell = &s->ledger.losses.bell;

        s->events.settings = &s->settings;
        s->events.host = &s->host;
        s->events.operations = &s->operations;
        s->events.readers = &s->readers;
        s->events.control = &s->control;

        s->resolver.settings = &s->settings;
        s->resolver.host = &s->host;
        s->resolver.operations = &s->operations;
        s->resolver.readers = &s->readers;
        s->resolver.events = &s->events;

        s->subscriptions.settings = &s->settings;
        s->subscriptions.operations = &s->operations;
        s->subscriptions.readers = &s->readers;
        s->subscriptions.events = &s->events;

        s->ledger.settings = &s->settings;
        s->ledger.host = &s->host;
        s->ledger.operations = &s->operations;
        s->ledger.readers = &s->readers;
        s->ledger.events = &s->events;

        s->streams.settings = &s->settings;
        s->streams.operations = &s->operations;
        s->streams.readers = &s->readers;
        s->streams.events = &s->events;
        s->streams.subscriptions = &s->subscriptions;
        s->streams.ledger = &s->ledger;

        s->changes.settings = &s->settings;
        s->changes.host = &s->host;
        s->changes.operations = &s->operations;
        s->changes.readers = &s->readers;
        s->changes.events = &s->events;
        s->changes.resolver = &s->resolver;
        s->changes.subscriptions = &s->subscriptions;
        s->changes.ledger = &s->ledger;
        s->changes.streams = &s->streams;

        s->configuration.settings = &s->settings;
        s->configuration.host = &s->host;
        s->configuration.operations = &s->operations;
        s->configuration.notifier = &s->loop.notifier;
        s->configuration.readers = &s->readers;
        s->configuration.events = &s->events;
        s->configuration.resolver = &s->resolver;
        s->configuration.subscriptions = &s->subscriptions;
        s->configuration.streams = &s->streams;
        s->configuration.changes = &s->changes;

        s->requests.settings = &s->settings;
        s->requests.host = &s->host;
        s->requests.operations = &s->operations;
        s->requests.readers = &s->readers;
        s->requests.events = &s->events;
        s->requests.resolver = &s->resolver;
        s->requests.subscriptions = &s->subscriptions;
        s->requests.ledger = &s->ledger;
        s->requests.streams = &s->streams;
        s->requests.changes = &s->changes;
        s->requests.configuration = &s->configuration;

        s->readers.hooks = (ReaderHooks){ .userdata = s, .build_snapshot = build_snapshot, .changes_over = changes_over,
                                          .judge_probes = judge_probes, .on_cut = on_cut, .on_published = on_published };
}
