/* When streams hear that an event is removed: behind all of its items, and only if they may have heard of it. */
#include "tests/unit/dispatcher-rig.h"

#include <linux/perf_event.h>

#include "daemon/ring/ring-view.h"

/* Idle CPUs as they are seen: none of those that are wanted, as often as this says, and then all. */
static unsigned n_busy_looks;

void __wrap_idle_cpus_want(IdleCpus *i, uint32_t cpu);
int __wrap_idle_cpus_look(IdleCpus *i);
bool __wrap_idle_cpus_take(IdleCpus *i, uint32_t cpu);

void __wrap_idle_cpus_want(IdleCpus *i, uint32_t cpu) {
}

int __wrap_idle_cpus_look(IdleCpus *i) {
        return 0;
}

bool __wrap_idle_cpus_take(IdleCpus *i, uint32_t cpu) {
        if (n_busy_looks == 0)
                return true;
        n_busy_looks--;
        return false;
}

#define REMOVED "\x32\x03" "out" /* field `removed` of perfd.v1.Packet, as far as the dispatcher is concerned */

/* For those of number 0 who began at this cut or before. */
static void rig_post_removal(Rig *r, uint64_t cut, nsec_t at, char last) {
        DispatcherCommand *command = calloc(1, sizeof(*command));

        assert_non_null(command);
        *command = (DispatcherCommand){ .kind = DISPATCHER_REMOVED, .cut = cut, .at = at, .bytes = malloc(sizeof(REMOVED) - 1),
                                  .n_bytes = sizeof(REMOVED) - 1 };
        memcpy(command->bytes, REMOVED, sizeof(REMOVED) - 1);
        command->bytes[sizeof(REMOVED) - 2] = (uint8_t)last;
        dispatcher_post(&r->dispatcher, command);
}

/* What came since then, in letters: an item, or the last one of a removal. */
static void rig_assert_came(Rig *r, const char *expected) {
        uint8_t bytes[4096];
        char came[64] = "";
        ssize_t n = recv(r->peer, bytes, sizeof(bytes), MSG_DONTWAIT);

        for (ssize_t i = 0; i < n; i++) {
                if (i + 1 < n && bytes[i] == 0x22 && bytes[i + 1] == 0)
                        strcat(came, "i");
                if (i + 4 < n && memcmp(bytes + i, REMOVED, 4) == 0)
                        strncat(came, (const char *)bytes + i + 4, 1);
        }
        assert_string_equal(came, expected);
}

/*
 * What happened in the middle of a turn, that the last CPU became idle, lets go first what was before the removal, and then the
 * removal.
 */
static void test_removal_behind_items(void **state) {
        nsec_t now = clock_now(CLOCK_MONOTONIC);
        struct perf_event_mmap_page page = { .data_size = 4096 };
        Ring ring = { .page = &page };
        RingView view = RING_VIEW_NULL;
        Rig r;

        rig_init(&r);
        ring_view_open(&view, &ring);
        ring_view_set_quiet(&view, true);
        r.pipes[1].view = &view;
        r.pipes[1].cpu = UINT32_MAX; /* nobody runs there */
        r.dispatcher.idle = (IdleCpus *)&r; /* wrapped: it is only asked whether there is one */
        n_busy_looks = 1;
        assert_true(queue_push(&r.full[0], make_batch(0, now, (const nsec_t[]){ now - 2 * NSEC_PER_SEC }, 1)));
        rig_post_removal(&r, 1, now - NSEC_PER_SEC, 't');
        assert_int_equal(dispatcher_run_cycle(&r.dispatcher, false), 0);
        assert_int_equal(n_busy_looks, 0);
        rig_assert_came(&r, "it");
        r.dispatcher.idle = NULL;
        rig_deinit(&r);
}

/* Each in its place, whoever removed first; and not to who began behind it, perhaps with the number of another subscription. */
static void test_removals_in_order(void **state) {
        Rig r;

        rig_init(&r);
        r.subscriber->began = 7;
        rig_post_removal(&r, 7, 30, 'c');
        rig_post_removal(&r, 8, 10, 'a');
        rig_post_removal(&r, 7, 30, 'd');
        rig_post_removal(&r, 7, 20, 'b');
        rig_post_removal(&r, 6, 5, 'x');
        assert_true(queue_push(&r.full[0], make_batch(0, 100, (const nsec_t[]){ 15, 25, 35 }, 3)));
        assert_int_equal(dispatcher_run_cycle(&r.dispatcher, false), 0);
        rig_assert_came(&r, "");
        assert_true(queue_push(&r.full[1], make_batch(1, 20, NULL, 0)));
        assert_int_equal(dispatcher_run_cycle(&r.dispatcher, false), 0);
        rig_assert_came(&r, "iab");
        assert_true(queue_push(&r.full[1], make_batch(1, 100, NULL, 0)));
        assert_int_equal(dispatcher_run_cycle(&r.dispatcher, false), 0);
        rig_assert_came(&r, "iicd");
        rig_deinit(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_removal_behind_items),
                cmocka_unit_test(test_removals_in_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
