/* Which path takes which samples: the best that takes all of a stream's, and for anything there is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/model/sample-path.h"

static void test_each_path(void **state) {
        static const struct {
                RecordLayout layout;
                ItemEncoding encoding;
                RouteShape routes;
                SamplePath path;
        } cases[] = {
                { RECORD_LAYOUT_BASE, ITEM_ONE_COPY, ROUTES_ONE, PATH_INTERLEAVED },
                { RECORD_LAYOUT_BASE, ITEM_FIXED, ROUTES_ONE, PATH_INTERLEAVED },
                { RECORD_LAYOUT_BASE, ITEM_FIXED, ROUTES_ONE_GROUP, PATH_RUN },
                { RECORD_LAYOUT_BASE, ITEM_ONE_COPY, ROUTES_ANY, PATH_IN_PLACE },
                { RECORD_LAYOUT_BASE, ITEM_VARIABLE, ROUTES_ONE, PATH_IN_PLACE },
                { RECORD_LAYOUT_ANY, ITEM_ONE_COPY, ROUTES_ONE, PATH_GENERAL },
                { RECORD_LAYOUT_ANY, ITEM_VARIABLE, ROUTES_ANY, PATH_GENERAL },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                assert_int_equal(sample_path(cases[i].layout, cases[i].encoding, cases[i].routes), cases[i].path);
}

/* More that is known of samples never takes them to a worse path. */
static void test_more_is_not_worse(void **state) {
        for (int layout = RECORD_LAYOUT_ANY; layout <= RECORD_LAYOUT_BASE; layout++)
                for (int encoding = ITEM_VARIABLE; encoding <= ITEM_ONE_COPY; encoding++)
                        for (int routes = ROUTES_ANY; routes <= ROUTES_ONE; routes++) {
                                SamplePath path = sample_path((RecordLayout)layout, (ItemEncoding)encoding, (RouteShape)routes);

                                if (layout < RECORD_LAYOUT_BASE)
                                        assert_true(path <= sample_path((RecordLayout)(layout + 1), (ItemEncoding)encoding, (RouteShape)routes));
                                if (encoding < ITEM_ONE_COPY)
                                        assert_true(path <= sample_path((RecordLayout)layout, (ItemEncoding)(encoding + 1), (RouteShape)routes));
                                if (routes < ROUTES_ONE)
                                        assert_true(path <= sample_path((RecordLayout)layout, (ItemEncoding)encoding, (RouteShape)(routes + 1)));
                        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_path),
                cmocka_unit_test(test_more_is_not_worse),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
