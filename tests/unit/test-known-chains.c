/* Callchains whose frames are kept: what is found is what was kept of the same addresses, process and memory, and of nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/perfctl/names/known-chains.h"

static NamedFrame frames[300];

static ChainKey key_of(const uint64_t *addresses, uint32_t n_kernel, uint32_t n_user) {
        return (ChainKey){ .kernel = addresses, .user = addresses + n_kernel, .n_kernel = n_kernel, .n_user = n_user, .pid = 7 };
}

static void assert_has(const KnownChains *k, const ChainKey *key, uint64_t number, uint64_t first_ip, size_t n) {
        KnownChain known;

        assert_true(known_chains_find(k, key, &known));
        assert_int_equal(known.number, number);
        assert_int_equal(known.n, n);
        assert_int_equal(known.frames[0].ip, first_ip);
        assert_int_equal(known.frames[n - 1].ip, first_ip + n - 1);
}

static void test_only_the_same(void **state) {
        const uint64_t addresses[] = { 1, 2, 3, 4, 5 }, others[] = { 1, 2, 3, 4, 6 };
        KnownChains *k = known_chains_new();
        const ChainKey key = key_of(addresses, 2, 3);
        ChainKey other[] = { key_of(others, 2, 3), key_of(addresses, 3, 2), key_of(addresses, 2, 2), key, key, key };
        const uint64_t number = known_chains_keep(k, &key, &frames[10], 6);
        KnownChain known;

        other[3].pid = 8;
        other[4].generation = 1;
        other[5].kernel_generation = 1;
        assert_int_not_equal(number, 0);
        assert_has(k, &key, number, 10, 6);
        for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++)
                assert_false(known_chains_find(k, &other[i], &known));
        known_chains_free(k);
}

static void test_limits(void **state) {
        static const uint64_t addresses[257];
        KnownChains *k = known_chains_new();
        const ChainKey few = key_of(addresses, 1, 1), least = key_of(addresses, 1, 2), most = key_of(addresses, 0, 256), many = key_of(addresses, 0, 257);

        assert_false(known_chains_may_keep(&few));
        assert_true(known_chains_may_keep(&least));
        assert_true(known_chains_may_keep(&most));
        assert_false(known_chains_may_keep(&many));
        assert_int_equal(known_chains_keep(k, &least, frames, 257), 0); /* so many were inlined */
        assert_int_not_equal(known_chains_keep(k, &least, frames, 256), 0);
        known_chains_free(k);
}

/* Many more than there are places: each is found as it was kept or not at all, and no number comes twice. */
static void test_many(void **state) {
        KnownChains *k = known_chains_new();
        uint64_t last = 0;
        size_t n_found = 0;

        for (uint64_t i = 0; i < 100000; i++) {
                const uint64_t addresses[] = { i, i * i, 77 };
                const ChainKey key = key_of(addresses, 0, 3);
                const uint64_t number = known_chains_keep(k, &key, &frames[i % 200], 1 + i % 50);

                assert_true(number > last);
                last = number;
                assert_has(k, &key, number, i % 200, 1 + i % 50);
        }
        for (uint64_t i = 0; i < 100000; i++) {
                const uint64_t addresses[] = { i, i * i, 77 };
                const ChainKey key = key_of(addresses, 0, 3);
                KnownChain known;

                if (!known_chains_find(k, &key, &known))
                        continue;
                assert_has(k, &key, i + 1, i % 200, 1 + i % 50);
                n_found++;
        }
        assert_in_range(n_found, 4096, 8192);
        known_chains_free(k);
}

static int number_frames(void **state) {
        for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++)
                frames[i].ip = i;
        return 0;
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_only_the_same), cmocka_unit_test(test_limits), cmocka_unit_test(test_many) };

        return cmocka_run_group_tests(tests, number_frames, NULL);
}
