/* CPUs of this host: lists of sysfs of any length, and values that name what can never be there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/host.h"
#include "config/parse/load.h"
#include "config/value.h"
#include "daemon/base/cpu-list.h"
#include "daemon/kernel/task/tasks.h"

/* 19 KiB: each second CPU of the largest kernels. What is cut after 1,023 bytes ends with "27" of "276". */
static void test_long_list(void **state) {
        char path[] = "/tmp/test-host.XXXXXX";
        int fd = mkstemp(path);
        FILE *f = fdopen(fd, "w");
        uint32_t *cpus;
        size_t n;

        assert_non_null(f);
        for (unsigned cpu = 0; cpu <= CPU_LIST_MAX_CPU; cpu += 2)
                fprintf(f, "%s%u", cpu ? "," : "", cpu);
        fputc('\n', f);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(cpus_read(path, &cpus, &n, NULL), 0);
        assert_int_equal(n, (CPU_LIST_MAX_CPU + 1) / 2);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(cpus[i], 2 * i);
        free(cpus);
        assert_int_equal(unlink(path), 0);
}

static int decode(const char *list, Explanation *e) {
        char *text = NULL;
        int r = value_decode_to("targets.NAME.cpus", list, &text, e);

        free(text);
        return r;
}

static void test_host(void **state) {
        static const uint32_t possible[] = { 0, 1, 2, 3, 6 };
        bool online[] = { true, true, false, true, true };
        Explanation e;

        assert_int_equal(decode("0-4096", &e), 0);
        assert_int_equal(config_set_host_cpus(possible, online, 5), 0);
        assert_int_equal(decode("0-1,6", &e), 0);
        assert_string_equal(e.text, "");
        assert_int_equal(decode("0-4096", &e), REFUSED_INVALID);
        assert_string_equal(e.text, "cpus: found '0-4096', and this host cannot have CPU 4: it can have 0-3,6 "
                "(/sys/devices/system/cpu/possible)");
        assert_string_equal(e.reason, "bad-value");
        assert_int_equal(e.position, 1);
        assert_int_equal(decode("0,8191", &e), REFUSED_INVALID);
        assert_int_equal(e.position, 3);
        assert_int_equal(decode("0-3", &e), 0);
        assert_string_equal(e.text, "cpus: CPU 2 is offline now");
        assert_int_equal(decode("1,1,2", &e), 0);
        assert_string_equal(e.text, "cpus: CPU 1 occurs twice");
        config_set_host_cpu_online(2, true);
        config_set_host_cpu_online(77, true); /* is none */
        assert_int_equal(decode("0-3", &e), 0);
        assert_string_equal(e.text, "");
        config_forget_host();
        assert_int_equal(decode("0-8191", &e), 0);
        assert_int_equal(decode("0-8192", &e), REFUSED_INVALID);
}

static void test_long_text(void **state) {
        uint32_t possible[100];
        bool online[100] = { false };
        char text[HOST_CPUS_SIZE];

        for (size_t i = 0; i < 100; i++)
                possible[i] = (uint32_t)i * 80;
        assert_int_equal(config_set_host_cpus(possible, online, 100), 0);
        assert_string_equal(config_host_cpus_text(text), "0,80,160,240,320,400,480,560,640,720,800,880,960,1040,1120,...");
        config_forget_host();
}

/* Where it stands in a file; and numbers that no group can have. */
static void test_places(void **state) {
        static const uint32_t possible[] = { 0, 1 };
        static const struct {
                const char *yaml, *expected;
                unsigned column;
        } cases[] = {
                { "readers: { cpus: '0-4096' }", "readers.cpus: found '0-4096', and this host cannot have CPU 2", 19 },
                { "dispatcher: { cpus: '8191' }", "dispatcher.cpus: found '8191', and this host cannot have CPU 8191", 22 },
                { "targets: { a: { cpus: '0,7' } }", "cpus: found '0,7', and this host cannot have CPU 7", 26 },
                { "state: /run/perfd/stream.sock", "state: the file '/run/perfd/stream.sock', which is written with .new behind its name", 8 },
                { "listen: { control: /a/b.new }\nstate: /a/b", "state: the file '/a/b', which is written with .new behind its name and then renamed, would replace the socket '/a/b.new'", 0 },
                { "groups: { a: { events: [ 'mem:0xffffffffffffffff/2:rw' ] } }", "event 'mem:0xffffffffffffffff/2:rw': the 2 bytes", 0 },
                { "access: { stream-group: 4294967296 }", "access.stream-group: found '4294967296', which is above 4294967294", 0 },
                { "access: { stream-group: 4294967295 }", "access.stream-group: found '4294967295', which is above 4294967294", 0 },
                { "access: { stream-group: 99999999999999999999999 }", "access.stream-group: found '999", 0 },
        };

        assert_int_equal(config_set_host_cpus(possible, (bool[]){ true, true }, 2), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;
                Config *c = NULL;
                char yaml[200];

                (void)snprintf(yaml, sizeof(yaml), "version: 1\n%s\n", cases[i].yaml);
                assert_int_equal(config_parse("f", yaml, strlen(yaml), &m, &c), REFUSED_INVALID);
                assert_int_equal(m.n_items, 1);
                assert_memory_equal(m.items[0].text, cases[i].expected, strlen(cases[i].expected));
                assert_int_equal(m.items[0].line, strchr(cases[i].yaml, '\n') ? 3 : 2);
                if (cases[i].column)
                        assert_int_equal(m.items[0].column, cases[i].column);
                config_diagnostics_deinit(&m);
        }
        config_forget_host();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_long_list), cmocka_unit_test(test_host), cmocka_unit_test(test_long_text),
                cmocka_unit_test(test_places),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
