/*
 * Probes of both kinds, by PMU and by tracefs. A user probe is put into a file of memory that nobody runs, so that no
 * code is touched; a kernel probe on a function that is rarely called, and disabled. What is defined in tracefs has the
 * name of a perfd, so that even what a power cut leaves would be taken for what it is.
 */
#include "daemon/kernel/doctor/trial.h"

#include "daemon/base/cleanup.h"
#include "daemon/kernel/probe/dynamic.h"
#include "daemon/kernel/probe/names.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define TRIAL_OFFSET 0x100

static const char kernel_symbol[] = "vfs_fsync_range"; /* exported, so it is in every kernel as itself */

/* A file of memory with room for a probe, and its path; -errno. */
static int make_target(char *path, size_t size) {
        int fd = memfd_create("perfd-doctor", MFD_CLOEXEC);

        if (fd < 0)
                return error_origin(-errno);
        if (ftruncate(fd, 4096) < 0) {
                int error = error_origin(-errno);

                close(fd);
                return error;
        }
        (void)snprintf(path, size, "/proc/self/fd/%d", fd);
        return fd;
}

/* -ENODEV: no such PMU. */
static int try_pmu(long type, const char *place, uint64_t offset) {
        struct perf_event_attr attr = { .disabled = 1 };

        if (type < 0)
                return -ENODEV;
        attr.type = (uint32_t)type;
        attr.config1 = (uint64_t)(uintptr_t)place;
        attr.config2 = offset;
        return doctor_try(&attr, 0, -1);
}

static int try_uprobe_pmu(long type) {
        char path[32];
        _cleanup_close_ int fd = make_target(path, sizeof(path));

        return fd < 0 ? fd : try_pmu(type, path, TRIAL_OFFSET);
}

/* Defines and removes; a Refusal or -errno. */
static int try_definition(const char *tracing, bool is_kernel, Explanation *e) {
        char group[PROBE_GROUP_SIZE], path[32], place[64];
        _cleanup_close_ int fd = -1;
        ProbeArgs none = { .text = (char *)"" };
        ProbeDefinition p = {
                .root = tracing, .is_kernel = is_kernel, .group = group, .name = "doctor", .args = &none
        };
        ProbeOwner self;
        int r = probe_owner_self(&self, e);

        if (r != 0)
                return r;
        probe_owner_group(&self, group);
        if (!is_kernel) {
                fd = make_target(path, sizeof(path));
                if (fd < 0)
                        return fd;
                (void)snprintf(place, sizeof(place), "%s:0x%x", path, TRIAL_OFFSET);
        }
        p.place = p.what = is_kernel ? kernel_symbol : place;
        r = probe_definition_add(&p, e);
        return r != 0 ? r : probe_definition_remove(tracing, is_kernel, group, p.name);
}

static long pmu_number(const char *root, const char *name) {
        _cleanup_free_ char *path = NULL;
        _cleanup_fclose_ FILE *f = NULL;
        long type = -1;

        if (asprintf(&path, "%s/sys/bus/event_source/devices/%s/type", root, name) < 0) {
                path = NULL;
                return -1;
        }
        f = fopen(path, "re");
        return f && fscanf(f, "%ld", &type) == 1 ? type : -1;
}

bool doctor_has_kprobes(const char *tracing) {
        return try_pmu(pmu_number("", "kprobe"), kernel_symbol, 0) == 0 ||
               (tracing && try_definition(tracing, true, NULL) == 0);
}

bool doctor_has_uprobes(const char *tracing) {
        return try_uprobe_pmu(pmu_number("", "uprobe")) == 0 || (tracing && try_definition(tracing, false, NULL) == 0);
}

/* Linux 6.16, and what took its patch, asks for more where a probe is written into the memory of programs. */
static int pmu_capability(Doctor *d, bool is_kernel) {
        unsigned major = 0, minor = 0;
        char release[64];
        bool is_new = doctor_read(d, "/proc/sys/kernel/osrelease", release, sizeof(release)) == 0 &&
                      sscanf(release, "%u.%u", &major, &minor) == 2 && (major > 6 || (major == 6 && minor >= 16));

        return !is_kernel && (is_new || doctor_has(d, CAP_PERFMON)) ? CAP_SYS_ADMIN : CAP_PERFMON;
}

static void examine_pmu(Doctor *d, bool is_kernel) {
        const char *what = is_kernel ? "kprobes" : "uprobes",
                   *option = is_kernel ? "CONFIG_KPROBE_EVENTS" : "CONFIG_UPROBE_EVENTS";
        long type = pmu_number(d->wants->root, is_kernel ? "kprobe" : "uprobe");
        int r = is_kernel ? try_pmu(type, kernel_symbol, 0) : try_uprobe_pmu(type);
        char remedy[96];

        (void)snprintf(remedy, sizeof(remedy), "use a kernel with %s", option);
        if (r == 0)
                doctor_yes(d, what, "a probe on %s opens through the %.*s PMU", is_kernel ? kernel_symbol : "a file",
                           (int)strlen(what) - 1, what);
        else if (r == -ENODEV)
                doctor_no(d, what, remedy, "this kernel has no %.*s PMU", (int)strlen(what) - 1, what);
        else if (!is_kernel && d->tracing && try_definition(d->tracing, false, NULL) == 0)
                doctor_yes(d, what, "a probe on a file is defined in uprobe_events; the uprobe PMU, which is then not needed, "
                        "says: %s", strerror(-r));
        else
                doctor_no(d, what, r == -EACCES || r == -EPERM ? doctor_permit(d, pmu_capability(d, is_kernel), NULL) : remedy,
                          "a probe on %s through the PMU: %s", is_kernel ? kernel_symbol : "a file", strerror(-r));
}

/* -errno */
static int try_writing(const char *path) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

        return fd < 0 ? error_origin(-errno) : 0;
}

static void refuse_writing(Doctor *d, const char *what, const char *path, int r) {
        if (r == -ENOENT)
                doctor_no(d, what,
                          *what == 'k' ? "use a kernel with CONFIG_KPROBE_EVENTS" : "use a kernel with CONFIG_UPROBE_EVENTS",
                          "there is no %s", path);
        else
                doctor_no(d, what,
                          r == -EROFS ? *what == 'k' ? "ProtectKernelTunables=no in perfd's unit; probes without arguments do "
                                  "not need it"
                                                     : "ProtectKernelTunables=no in perfd's unit"
                                      : doctor_permit_writing(d, path, "let its group write to that file"),
                          "%s cannot be written: %s%s", path, strerror(-r),
                          *what == 'u' ? "; user probes use the PMU, which may count a hit twice" : "");
}

static void examine_dynamic(Doctor *d, bool is_kernel) {
        const char *what = is_kernel ? "kprobe_events" : "uprobe_events";
        _cleanup_free_ char *path = NULL;
        Explanation e = EXPLANATION_NULL;
        int r;

        if (!d->tracing) {
                doctor_no(d, what, "see tracefs", "tracefs, in which probes are defined, is not mounted");
                return;
        }
        path = probe_file(d->tracing, is_kernel, "events");
        r = path ? try_writing(path) : error_origin(-ENOMEM);
        if (r < 0) {
                refuse_writing(d, what, path ? path : "", r);
                return;
        }
        r = try_definition(d->tracing, is_kernel, &e);
        if (r == 0)
                doctor_yes(d, what, "a probe was defined and removed: %s", is_kernel ? "probes with arguments work"
                           : "hits are counted exactly, and probes with arguments work");
        else
                doctor_no(d, what, "see dmesg; kernel lockdown and security modules can forbid it", "%s",
                          r > 0 ? e.text : strerror(-r));
}

/* Whether addresses are shown is decided for each reader by kernel.kptr_restrict and CAP_SYSLOG. */
static void examine_symbols(Doctor *d) {
        _cleanup_fclose_ FILE *f = fopen(doctor_path(d, "/proc/kallsyms"), "re");
        int n = 0, error = f ? 0 : errno;
        long restricted = doctor_read_number(d, "/proc/sys/kernel/kptr_restrict");
        unsigned long long address = 0;
        char name[256];

        while (f && n < 64 && address == 0 && fscanf(f, "%llx %*c %255s%*[^\n]", &address, name) == 2)
                n++;
        if (n == 0)
                doctor_no(d, "kernel symbols",
                          error == ENOENT ? "use a kernel with CONFIG_KALLSYMS"
                                          : "ProtectKernelTunables=no in perfd's unit, as yes hides the file; kernel probes do "
                                                  "not need it",
                          "/proc/kallsyms %s%s: perfd asks the kernel whether a name exists, and cannot suggest similar ones",
                          error ? "cannot be read: " : "is empty", error ? strerror(error) : "");
        else
                doctor_yes(d, "kernel symbols", "/proc/kallsyms has names%s; kernel.kptr_restrict is %ld",
                           address != 0 ? " and addresses" : ", but no addresses; only probes at an address and some messages "
                                   "need them",
                           restricted);
}

static void examine_btf(Doctor *d) {
        char magic[3];
        int r = doctor_read(d, "/sys/kernel/btf/vmlinux", magic, sizeof(magic));

        if (r == 0)
                doctor_yes(d, "BTF", "/sys/kernel/btf/vmlinux can be read");
        else
                doctor_no(d, "BTF",
                          r == -ENOENT ? "use a kernel with CONFIG_DEBUG_INFO_BTF"
                                       : doctor_permit(d, CAP_DAC_READ_SEARCH, NULL),
                          "/sys/kernel/btf/vmlinux: %s", strerror(-r));
}

void doctor_examine_probes(Doctor *d) {
        d->topic = "probes";
        examine_pmu(d, true);
        examine_pmu(d, false);
        examine_dynamic(d, true);
        examine_dynamic(d, false);
        examine_symbols(d);
        examine_btf(d);
}
