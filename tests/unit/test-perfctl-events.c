/* How events may be written on perfctl's command line, and what the daemon is asked for. */
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "client/perfctl/events/event-words.h"
#include "client/perfctl/connection/library.h"
#include "tests/unit/perfctl-rig.h"
#include "tests/unit/played-stream.h"

/* `names` with a blank between them is what `text` becomes. */
static void check_words(const char *text, const char *names) {
        static const Verb verb = { .name = "add" };
        Perfctl p = { .verb = &verb };
        EventWords w = EVENT_WORDS_NULL;
        char joined[512] = "";

        assert_int_equal(event_words_add(&w, &p, text), 0);
        for (size_t i = 0; i < w.n; i++) {
                strcat(joined, i > 0 ? " " : "");
                strcat(joined, w.names[i]);
        }
        assert_string_equal(joined, names);
        event_words_deinit(&w);
}

static void test_lists(void **state) {
        check_words("cycles", "cycles");
        check_words("", "");
        check_words("sched:sched_switch,cycles:u,cs", "sched:sched_switch cycles:u cs");
        check_words("{cycles,instructions}:S,cs", "{cycles,instructions}:S cs");
        check_words("{cycles,instructions", "{cycles,instructions");
        check_words("cpu/event=0x3c,umask=1/,cpu/t=2,x=3/u,cs", "cpu/event=0x3c,umask=1/ cpu/t=2,x=3/u cs");
        check_words("mem:0x10/8:w,cs", "mem:0x10/8:w cs");
        check_words("sched:s[a,b]*,cs", "sched:s[a,b]* cs");
        /* symbols of one probe */
        check_words("kprobe:a,b,c", "kprobe:a kprobe:b kprobe:c");
        check_words("kprobe:a|b+0x10,kretprobe:c,d", "kprobe:a|b+0x10 kretprobe:c kretprobe:d");
        check_words("kprobe:a,sched:b,cs", "kprobe:a sched:b cs");
        check_words("kprobe:a,cpu/x/", "kprobe:a cpu/x/");
        check_words("uprobe:/bin/x:f,g,uretprobe:/bin/x:h,i", "uprobe:/bin/x:f uprobe:/bin/x:g uretprobe:/bin/x:h uretprobe:/bin/x:i");
        check_words("usdt:/l/x:p:a,b", "usdt:/l/x:p:a usdt:/l/x:p:b");
        check_words("uprobe:/bin/x:f(int,char),g", "uprobe:/bin/x:f(int,char) uprobe:/bin/x:g");
        /* a path may have commas */
        check_words("uprobe:/a,b/c:f,g", "uprobe:/a,b/c:f uprobe:/a,b/c:g");
        check_words("usdt:/a,b:p:n", "usdt:/a,b:p:n");
        check_words("uprobe:/a,b", "uprobe:/a,b");
}

static void test_other_spellings(void **state) {
        char folder[] = "/tmp/test-perfctl-events-XXXXXX", expected[128];

        check_words("tracepoint:sched:sched_switch", "sched:sched_switch");
        check_words("tracepoint:sched:sched_*,tracepoint:irq:*", "sched:sched_* irq:*");
        check_words("tracepoint:mine", "tracepoint:mine"); /* a group of this name */
        check_words("software:page-faults,hardware:cycles", "page-faults cycles");
        check_words("software:", "software:");
        check_words("software:*,hardware:cycles:100", "software:* hardware:cycles:100");
        check_words("uprobe:/bin/x", "uprobe:/bin/x");
        check_words("uprobe::f", "uprobe::f");
        assert_non_null(mkdtemp(folder));
        assert_int_equal(chdir(folder), 0);
        (void)snprintf(expected, sizeof(expected), "uprobe:%s/a.out:main", folder);
        check_words("uprobe:./a.out:main", expected);
        (void)snprintf(expected, sizeof(expected), "usdt:%s/b/a.out:x:y", folder);
        check_words("usdt:b/a.out:x:y", expected);
        assert_int_equal(chdir("/"), 0);
        check_words("uprobe:./a.out:main", "uprobe:/a.out:main");
        assert_int_equal(rmdir(folder), 0);
}

/* ---- libraries --------------------------------------------------------------------------------------------------- */

static void put_file(const char *folder, const char *name, const char *bytes) {
        char path[256];
        FILE *f;

        (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
        f = fopen(path, "w");
        assert_non_null(f);
        assert_true(fputs(bytes, f) >= 0);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(chmod(path, 0755), 0);
}

static void remove_file(const char *folder, const char *name) {
        char path[256];

        (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
        assert_int_equal(unlink(path), 0);
}

static void check_library(const char *folder, const char *name, const char *file) {
        char *path = NULL, *names = NULL, expected[256];

        assert_int_equal(library_find(name, &path, &names), 0);
        (void)snprintf(expected, sizeof(expected), "%s/%s", folder, file);
        assert_string_equal(path, expected);
        assert_null(names);
        free(path);
}

static void test_libraries(void **state) {
        char folder[] = "/tmp/test-perfctl-events-XXXXXX", old[4096] = "", to[256], link[256];
        char *path = NULL, *names = NULL;

        if (getenv("LD_LIBRARY_PATH"))
                strncpy(old, getenv("LD_LIBRARY_PATH"), sizeof(old) - 1);
        assert_non_null(mkdtemp(folder));
        setenv("LD_LIBRARY_PATH", folder, 1);
        put_file(folder, "libxyz.so.2.1", ELFMAG);
        put_file(folder, "libxyzzy.so.9", ELFMAG);
        put_file(folder, "libscript.so", "GROUP(x)");
        (void)snprintf(to, sizeof(to), "%s/libxyz.so.2.1", folder);
        (void)snprintf(link, sizeof(link), "%s/libxyz.so", folder);
        assert_int_equal(symlink(to, link), 0);
        check_library(folder, "libxyz", "libxyz.so.2.1");
        check_library(folder, "libxyz.so", "libxyz.so");
        check_library(folder, "libxyz.so.2.1", "libxyz.so.2.1");
        assert_int_equal(library_find("libxyz.so.2", &path, &names), LIBRARY_E_NONE);
        assert_int_equal(library_find("libscript", &path, &names), LIBRARY_E_NONE);
        assert_int_equal(library_find("", &path, &names), LIBRARY_E_NONE);
        assert_int_equal(library_find("lib*", &path, &names), LIBRARY_E_NONE);
        put_file(folder, "libxyz.so.3", ELFMAG);
        assert_int_equal(library_find("libxyz", &path, &names), LIBRARY_E_SEVERAL);
        assert_string_equal(names, "libxyz.so.2.1 or libxyz.so.3");
        free(names);
        for (const char *const *name = WORDS("libxyz.so", "libxyz.so.2.1", "libxyz.so.3", "libxyzzy.so.9", "libscript.so"); *name; name++)
                remove_file(folder, *name);
        assert_int_equal(rmdir(folder), 0);
        if (*old)
                setenv("LD_LIBRARY_PATH", old, 1);
        else
                unsetenv("LD_LIBRARY_PATH");
}

/* As dl-cache.h has it, with three libraries: of this machine, of another one, and for certain CPUs. */
static size_t make_cache(uint8_t *to) {
        static const char strings[] = "libx.so.1\0/l/libx.so.1\0/o/libx.so.1\0/h/libx.so.1";
        static const uint32_t paths[] = { 10, 23, 36 };
        struct utsname u;
        uint32_t n = 3, at = 48 + 3 * 24;

        assert_int_equal(uname(&u), 0);
        memset(to, 0, at);
        memcpy(to, "glibc-ld.so.cache1.1", 20);
        memcpy(to + 20, &n, 4);
        for (uint32_t i = 0; i < n; i++) {
                uint32_t flags = strcmp(u.machine, "aarch64") == 0 ? 0x0a03 : 0x0303, key = at, value = at + paths[i];
                uint64_t hwcap = i == 2;

                if (i == 1)
                        flags = 0x0501;
                memcpy(to + 48 + 24 * i, &flags, 4);
                memcpy(to + 52 + 24 * i, &key, 4);
                memcpy(to + 56 + 24 * i, &value, 4);
                memcpy(to + 64 + 24 * i, &hwcap, 8);
        }
        memcpy(to + at, strings, sizeof(strings));
        return at + sizeof(strings);
}

static int visit(void *userdata, const char *soname, const char *path) {
        assert_string_equal(soname, "libx.so.1");
        assert_string_equal(path, "/l/libx.so.1");
        ++*(unsigned *)userdata;
        return 0;
}

static int visit_any(void *userdata, const char *soname, const char *path) {
        assert_true(strlen(soname) < 512 && *path == '/');
        return 0;
}

/* Also cut at each byte, and with each byte wrong: nothing behind its end is read (ASan says it). */
static void test_library_cache(void **state) {
        uint8_t bytes[512], *exact;
        size_t n = make_cache(bytes);
        unsigned found = 0;

        assert_int_equal(library_cache_walk(bytes, n, visit, &found), 0);
        assert_int_equal(found, 1);
        for (size_t i = 0; i < n; i++) {
                exact = malloc(i ? i : 1);
                memcpy(exact, bytes, i);
                assert_int_equal(library_cache_walk(exact, i, visit, &found), 0);
                free(exact);
        }
        for (size_t i = 20; i < 48 + 24; i++) {
                exact = malloc(n);
                memcpy(exact, bytes, n);
                exact[i] = 0xff;
                (void)library_cache_walk(exact, n, visit_any, NULL);
                free(exact);
        }
}

/* ---- what the daemon is asked for -------------------------------------------------------------------------------- */

static void play_offered(Ran *r, uint64_t id, const char *const *names) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__AvailableReply reply = PERFD__V1__AVAILABLE_REPLY__INIT;
        Perfd__V1__AvailableEvent events[4], *list[4];

        for (; names[reply.n_events]; reply.n_events++) {
                list[reply.n_events] = &events[reply.n_events];
                perfd__v1__available_event__init(list[reply.n_events]);
                list[reply.n_events]->event = (char *)names[reply.n_events];
        }
        reply.events = list;
        yes.id = id;
        yes.body_case = PERFD__V1__RESPONSE__BODY_AVAILABLE;
        yes.available = &reply;
        play_response(r->daemon, &yes);
}

/* The next request is to add these, and nothing else. */
static void await_add(Ran *r, const char *const *events) {
        Perfd__V1__Request *request = play_request(r->daemon);
        size_t n = 0;

        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_ADD);
        for (; events[n]; n++) {
                assert_true(n < request->add->n_events);
                assert_string_equal(request->add->events[n]->event, events[n]);
        }
        assert_int_equal(request->add->n_events, n);
        play_request_free(request);
}

static void play_added(Ran *r, uint64_t id) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__AddReply reply = PERFD__V1__ADD_REPLY__INIT;

        yes.id = id;
        yes.body_case = PERFD__V1__RESPONSE__BODY_ADDED;
        yes.added = &reply;
        play_response(r->daemon, &yes);
}

static void test_add_several(void **state) {
        Perfd__V1__Request *request;
        Ran r;

        run_start(&r, WORDS("add", "sched:a", "kprobe:f,g", "-e", "cs,{x,y}", "-etracepoint:b:c", "--group", "mine"));
        run_greet(&r);
        await_add(&r, WORDS("sched:a", "kprobe:f", "kprobe:g", "cs", "{x,y}", "b:c"));
        play_added(&r, 2);
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "", "");

        /* perfd knows how functions are called on its machine, which can be another one */
        run_start(&r, WORDS("add", "uretprobe:/a:f", "kprobe:f+4", "--args", "a=$arg1"));
        run_greet(&r);
        request = play_request(r.daemon);
        assert_string_equal(request->add->events[0]->args, "a=$arg1");
        assert_string_equal(request->add->events[1]->args, "a=$arg1");
        play_request_free(request);
        play_added(&r, 2);
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "", "");
}

static void test_add_by_bare_name(void **state) {
        Perfd__V1__Request *request;
        Ran r;

        run_start(&r, WORDS("add", "cs,sched_switch"));
        run_greet(&r);
        await_add(&r, WORDS("cs", "sched_switch"));
        play_no(&r, 2, PERFD__V1__STATUS__STATUS_NOT_FOUND, "unknown-event", "event 'sched_switch' is unknown");
        request = play_request(r.daemon);
        assert_string_equal(request->available->glob, "*:cs");
        play_request_free(request);
        play_offered(&r, 3, WORDS(NULL));
        request = play_request(r.daemon);
        assert_string_equal(request->available->glob, "*:sched_switch");
        play_request_free(request);
        play_offered(&r, 4, WORDS("sched:sched_switch"));
        await_add(&r, WORDS("cs", "sched:sched_switch"));
        play_added(&r, 5);
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "", "");

        run_start(&r, WORDS("add", "error"));
        run_greet(&r);
        await_add(&r, WORDS("error"));
        play_no(&r, 2, PERFD__V1__STATUS__STATUS_NOT_FOUND, "unknown-event", "event 'error' is unknown");
        play_request_free(play_request(r.daemon));
        play_offered(&r, 3, WORDS("a:error", "b:error"));
        run_end(&r);
        assert_ran(&r, PERFCTL_USAGE, "", "perfctl: add: 'error' is the name of several events: say which one of a:error, b:error\n");

        run_start(&r, WORDS("add", "nothing"));
        run_greet(&r);
        await_add(&r, WORDS("nothing"));
        play_no(&r, 2, PERFD__V1__STATUS__STATUS_NOT_FOUND, "unknown-event", "event 'nothing' is unknown");
        play_request_free(play_request(r.daemon));
        play_no(&r, 3, PERFD__V1__STATUS__STATUS_NOT_FOUND, "unknown-event", "nothing is called *:nothing");
        await_add(&r, WORDS("nothing"));
        play_no(&r, 4, PERFD__V1__STATUS__STATUS_NOT_FOUND, "unknown-event", "event 'nothing' is unknown");
        run_end(&r);
        assert_ran(&r, PERFCTL_FAILED, "", "perfctl: add: event 'nothing' is unknown\n");
}

static void await_subscribe(Ran *r, const char *const *events) {
        Perfd__V1__Request *request = play_request(r->daemon);
        size_t n = 0;

        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_SUBSCRIBE);
        for (; events[n]; n++) {
                assert_true(n < request->subscribe->n_events);
                assert_string_equal(request->subscribe->events[n], events[n]);
        }
        assert_int_equal(request->subscribe->n_events, n);
        play_request_free(request);
}

static void play_running(Ran *r, uint64_t id, const char *name) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ListReply list = PERFD__V1__LIST_REPLY__INIT;
        Perfd__V1__EventState event = PERFD__V1__EVENT_STATE__INIT, *events[] = { &event };
        Perfd__V1__EventSpec spec = PERFD__V1__EVENT_SPEC__INIT;

        spec.event = spec.name = (char *)name;
        spec.group = (char *)"default";
        event.id = 1;
        event.enabled = true;
        event.spec = &spec;
        list.events = events;
        list.n_events = 1;
        yes.id = id;
        yes.body_case = PERFD__V1__RESPONSE__BODY_LIST;
        yes.list = &list;
        play_response(r->daemon, &yes);
}

/* A name with a comma is looked for first. */
static void test_watch_names(void **state) {
        Perfd__V1__Request *request;
        Ran r;

        run_start(&r, WORDS("watch", "--no-symbols", "--count", "1", "my,name"));
        run_greet(&r);
        play_request_free(play_request(r.daemon));
        play_running(&r, 2, "my,name");
        await_subscribe(&r, WORDS("my,name"));
        play_no(&r, 3, PERFD__V1__STATUS__STATUS_DENIED, "denied", "it is refused");
        run_end(&r);
        assert_ran(&r, PERFCTL_FAILED, "", "perfctl: watch: it is refused\n");

        run_start(&r, WORDS("watch", "--no-symbols", "--count", "1", "my,name", "-e", "a:b,c"));
        run_greet(&r);
        play_request_free(play_request(r.daemon));
        play_running(&r, 2, "other:event");
        for (unsigned i = 0; i < 2; i++) {
                request = play_request(r.daemon);
                assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_LIST);
                assert_string_equal(request->list->glob, i == 0 ? "*:my" : "*:name");
                play_request_free(request);
                if (i == 0)
                        play_running(&r, 3, "group:my");
                else
                        play_no(&r, 4, PERFD__V1__STATUS__STATUS_NOT_FOUND, "unknown-event", "none");
        }
        request = play_request(r.daemon);
        assert_string_equal(request->list->glob, "*:c");
        play_request_free(request);
        play_running(&r, 5, "sched:c");
        play_request_free(play_request(r.daemon)); /* nor so */
        play_running(&r, 6, "group:my");
        play_request_free(play_request(r.daemon)); /* what runs; the others are added */
        play_running(&r, 7, "group:my");
        request = play_request(r.daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_AVAILABLE);
        assert_string_equal(request->available->glob, "*:name");
        play_request_free(request);
        play_no(&r, 8, PERFD__V1__STATUS__STATUS_NOT_FOUND, "unknown-event", "none");
        await_add(&r, WORDS("name", "a:b", "sched:c"));
        play_no(&r, 9, PERFD__V1__STATUS__STATUS_NOT_FOUND, "unknown-event", "event 'name' is unknown");
        run_end(&r);
        assert_ran(&r, PERFCTL_FAILED, "", "perfctl: watch: event 'name' is unknown\n");
}

/* Another client has added the event between the list and the request: added by a name of its own. */
static void test_watch_name_race(void **state) {
        char name[64];
        Ran r;

        run_start(&r, WORDS("watch", "--no-symbols", "a:b", "a:b", "a:*", "--pid", "1"));
        (void)snprintf(name, sizeof(name), "a:b~%d", (int)r.pid);
        run_greet(&r);
        for (uint64_t id = 2; id < 9; id += 2) {
                char second[80], third[80];
                Perfd__V1__Request *request;

                play_request_free(play_request(r.daemon)); /* the list */
                play_running(&r, id, id == 4 ? name : "other:event");
                request = play_request(r.daemon);
                assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_ADD);
                (void)snprintf(second, sizeof(second), "%s~2", name);
                (void)snprintf(third, sizeof(third), "%s~3", name);
                assert_string_equal(request->add->events[0]->name, id == 2 ? "" : id == 4 ? second : name);
                assert_string_equal(request->add->events[1]->name, id == 2 ? name : id == 4 ? third : second);
                assert_string_equal(request->add->events[2]->name, "");
                play_request_free(request);
                play_no(&r, id + 1, PERFD__V1__STATUS__STATUS_EXISTS, "exists", "an event called a:b already exists: remove it");
        }
        run_end(&r);
        assert_ran(&r, PERFCTL_FAILED, "", "perfctl: watch: an event called a:b already exists: remove it\n");
}

static void test_mistakes(void **state) {
        static const struct {
                const char *words[6];
                const char *message;
        } cases[] = {
                { { "add" }, "perfctl: add: which event? as in `perfctl add sched:sched_switch` or `perfctl add -e "
                             "cycles,page-faults`; `perfctl available` lists them\n" },
                { { "add", "a:b,c", "--name", "x" },
                  "perfctl: add: --name x: 2 events cannot all be called so: add each for itself, or give them a --group\n" },
                { { "add", "a:b,,c" }, "perfctl: add: 'a:b,,c': there is no event between its commas\n" },
                { { "add", "a:b," }, "perfctl: add: 'a:b,': there is no event between its commas\n" },
                { { "add", "-e" }, "perfctl: add: option -e requires EVENT,...\n" },
                { { "add", "uprobe:libnothing:f" },
                  "perfctl: add: uprobe:libnothing:f: 'libnothing' is neither a library that ld.so would find nor a program in $PATH: "
                  "name the file by its path\n" },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                Ran r;

                run_start(&r, cases[i].words);
                run_end(&r);
                if (strstr(r.message, "`perfctl help"))
                        *strstr(r.message, "`perfctl help") = '\0';
                assert_ran(&r, PERFCTL_USAGE, "", cases[i].message);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lists), cmocka_unit_test(test_other_spellings),
                cmocka_unit_test(test_libraries), cmocka_unit_test(test_library_cache),
                cmocka_unit_test(test_add_several),
                cmocka_unit_test(test_add_by_bare_name), cmocka_unit_test(test_watch_names),
                cmocka_unit_test(test_watch_name_race), cmocka_unit_test(test_mistakes),
        };

        return cmocka_run_group_tests(tests, open_listener, close_listener);
}
