/*
 * Lets the kernel write records and keeps them as they were in the ring, in a perf.data: `record-maker SCENARIO FILE`.
 * Each scenario asks for what it is about and does what makes the kernel write it, on one CPU, where the program stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/integration/recording.h"

#define PAGE ((size_t)4096)
#define BASE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)
#define UNLOADED_MS 30000 /* at most; under emulation too */
#define FORMATS (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID)

typedef struct Maker {
        struct perf_event_attr attrs[RECORDING_MAX_ATTRS];
        uint64_t ids[RECORDING_MAX_ATTRS];
        int fds[RECORDING_MAX_ATTRS];
        size_t n, n_pages;
        uint8_t *ring;
        uint8_t *records;
        size_t size;
} Maker;

static void die(const char *what) {
        fprintf(stderr, "record-maker: %s: %s\n", what, strerror(errno));
        exit(EXIT_FAILURE);
}

static int event_open(struct perf_event_attr *attr, pid_t pid, int group) {
        attr->size = sizeof(*attr);
        return (int)syscall(SYS_perf_event_open, attr, pid, sched_getcpu(), group, PERF_FLAG_FD_CLOEXEC);
}

/* The first has the ring, the others write into it. pid: 0 this program, -1 everything on this CPU. */
static int maker_add(Maker *m, struct perf_event_attr attr, pid_t pid, int group) {
        int fd;

        attr.sample_id_all = 1;
        attr.sample_type |= BASE;
        attr.disabled = group < 0;
        fd = event_open(&attr, pid, group);
        if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_ID, &m->ids[m->n]) != 0)
                die("perf_event_open");
        if (m->n == 0) {
                m->ring = mmap(NULL, (1 + m->n_pages) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                if (m->ring == MAP_FAILED)
                        die("mmap");
        } else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, m->fds[0]) != 0)
                die("set output");
        m->attrs[m->n] = attr;
        m->fds[m->n] = fd;
        m->n++;
        return fd;
}

static void maker_enable(Maker *m, unsigned long request) {
        for (size_t i = 0; i < m->n; i++)
                if (m->attrs[i].disabled && ioctl(m->fds[i], request, 0) != 0)
                        die("enable");
}

/* All that is in the ring, behind what was taken before. */
static void maker_take(Maker *m) {
        struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)m->ring;
        uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), size = m->n_pages * PAGE;

        m->records = realloc(m->records, m->size + (head - page->data_tail));
        for (uint64_t at = page->data_tail; at < head; at++)
                m->records[m->size++] = m->ring[PAGE + at % size];
        __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

static void burn(unsigned milliseconds) {
        clock_t until = clock() + (clock_t)milliseconds * CLOCKS_PER_SEC / 1000;

        while (clock() < until)
                ;
}

static void touch_pages(size_t n) {
        volatile uint8_t *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED)
                die("mmap");
        for (size_t i = 0; i < n; i++)
                p[i * PAGE] = 1;
        munmap((void *)p, n * PAGE);
}

static void run_true(void) {
        pid_t child = fork();

        if (child == 0) {
                execl("/bin/true", "true", (char *)NULL);
                _exit(127);
        }
        waitpid(child, NULL, 0);
}

/* ---- scenarios ---------------------------------------------------------------------------------------------------*/

#define ALL_PARTS                                                                                                      \
        (PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |                \
         PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |                 \
         PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_REGS_INTR |          \
         PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE)

#ifdef __x86_64__
#define USER_REGISTERS 0xff0fffULL
#else
#define USER_REGISTERS 0x1ffffffffULL
#endif

static struct perf_event_attr software(uint64_t config) {
        return (struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE, .config = config };
}

/* Every part that a software event can have, also in a read of its group. */
static void make_samples(Maker *m) {
        struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
        int leader;

        attr.sample_period = 1;
        attr.sample_type = ALL_PARTS | PERF_SAMPLE_READ;
        attr.read_format = FORMATS | PERF_FORMAT_GROUP | PERF_FORMAT_LOST;
        attr.sample_regs_user = attr.sample_regs_intr = USER_REGISTERS;
        attr.sample_stack_user = 256;
        leader = maker_add(m, attr, 0, -1);
        attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
        attr.sample_period = 0;
        maker_add(m, attr, 0, leader);
        attr.config = PERF_COUNT_SW_TASK_CLOCK;
        maker_add(m, attr, 0, leader);
        maker_enable(m, PERF_EVENT_IOC_ENABLE);
        touch_pages(40);
        sched_yield();
        touch_pages(10);
}

static void make_clock(Maker *m) {
        struct perf_event_attr attr = software(PERF_COUNT_SW_CPU_CLOCK);

        attr.sample_period = 1000000;
        attr.sample_type = ALL_PARTS | PERF_SAMPLE_READ;
        attr.read_format = FORMATS | PERF_FORMAT_LOST;
        attr.sample_regs_user = attr.sample_regs_intr = USER_REGISTERS;
        attr.sample_stack_user = 128;
        maker_add(m, attr, 0, -1);
        maker_enable(m, PERF_EVENT_IOC_ENABLE);
        burn(40);
}

static void make_tasks(Maker *m, bool build_id) {
        struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);

        attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = attr.namespaces = attr.inherit = 1;
        attr.mmap_data = 1;
        attr.build_id = build_id;
        attr.sample_type = PERF_SAMPLE_CPU | PERF_SAMPLE_ID;
        maker_add(m, attr, 0, -1);
        maker_enable(m, PERF_EVENT_IOC_ENABLE);
        prctl(PR_SET_NAME, "a name \xff");
        run_true();
}

static void make_old_maps(Maker *m) {
        struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);

        attr.mmap = attr.inherit = 1;
        maker_add(m, attr, 0, -1);
        maker_enable(m, PERF_EVENT_IOC_ENABLE);
        run_true();
}

/* Of one task, then of all on this CPU. */
static void make_switches(Maker *m, pid_t pid) {
        struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);

        attr.context_switch = 1;
        maker_add(m, attr, pid, -1);
        maker_enable(m, PERF_EVENT_IOC_ENABLE);
        for (int i = 0; i < 5; i++) {
                run_true();
                usleep(1000);
        }
}

static void make_namespaces(Maker *m) {
        struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);
        pid_t child;

        attr.namespaces = attr.inherit = 1;
        maker_add(m, attr, 0, -1);
        maker_enable(m, PERF_EVENT_IOC_ENABLE);
        child = fork();
        if (child == 0)
                _exit(unshare(CLONE_NEWUTS | CLONE_NEWNS));
        waitpid(child, NULL, 0);
}

/* Somebody's program was unloaded on this CPU. */
static bool maker_has_unload(const Maker *m) {
        const struct perf_event_mmap_page *page = (const struct perf_event_mmap_page *)m->ring;
        uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
        struct perf_event_header header;
        uint16_t type; /* behind the header */

        if (head > m->n_pages * PAGE)
                die("bpf: the ring is full");
        for (uint64_t at = 0; at < head; at += header.size) {
                memcpy(&header, m->ring + PAGE + at, sizeof(header));
                memcpy(&type, m->ring + PAGE + at + sizeof(header), sizeof(type));
                if (header.type == PERF_RECORD_BPF_EVENT && type == PERF_BPF_EVENT_PROG_UNLOAD)
                        return true;
        }
        return false;
}

/* A program of `r0 = 0; exit`, loaded and unloaded: KSYMBOL and BPF_EVENT of both. */
static void make_bpf(Maker *m) {
        static const struct bpf_insn program[] = {
                { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
                { .code = BPF_JMP | BPF_EXIT },
        };
        union bpf_attr load = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = 2, .insns = (uintptr_t)program,
                                .license = (uintptr_t)"GPL", .prog_name = "perfd_made" };
        struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);
        int fd;

        attr.ksymbol = attr.bpf_event = 1;
        maker_add(m, attr, -1, -1);
        maker_enable(m, PERF_EVENT_IOC_ENABLE);
        fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));
        if (fd < 0)
                die("bpf");
        close(fd);
        for (int i = 0; !maker_has_unload(m); i++) { /* by a work item, which needs this CPU */
                if (i == UNLOADED_MS)
                        die("bpf: the program is not unloaded");
                usleep(1000);
        }
}

/* argument of a scenario: a folder in which a cgroup can be made. */
static void make_cgroup(Maker *m, const char *folder) {
        struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);
        char path[512];

        attr.cgroup = attr.comm = 1; /* cgroup alone does not put it among those that get side records */
        maker_add(m, attr, -1, -1);
        maker_enable(m, PERF_EVENT_IOC_ENABLE);
        (void)snprintf(path, sizeof(path), "%s/perfd-record-maker-%d", folder, (int)getpid());
        if (mkdir(path, 0755) != 0 || rmdir(path) != 0)
                die(path);
}

/* More than the ring holds; taking some and writing once more lets the kernel say what it lost. */
static void make_lost(Maker *m) {
        struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);

        m->n_pages = 1;
        attr.sample_period = 1;
        attr.sample_type = PERF_SAMPLE_IP;
        maker_add(m, attr, 0, -1);
        maker_enable(m, PERF_EVENT_IOC_ENABLE);
        touch_pages(300);
        maker_take(m);
        touch_pages(3);
}

static void make(Maker *m, const char *scenario, const char *argument) {
        if (strcmp(scenario, "samples") == 0)
                make_samples(m);
        else if (strcmp(scenario, "clock") == 0)
                make_clock(m);
        else if (strcmp(scenario, "tasks") == 0)
                make_tasks(m, false);
        else if (strcmp(scenario, "build-ids") == 0)
                make_tasks(m, true);
        else if (strcmp(scenario, "old-maps") == 0)
                make_old_maps(m);
        else if (strcmp(scenario, "switches") == 0)
                make_switches(m, 0);
        else if (strcmp(scenario, "cpu-switches") == 0)
                make_switches(m, -1);
        else if (strcmp(scenario, "namespaces") == 0)
                make_namespaces(m);
        else if (strcmp(scenario, "bpf") == 0)
                make_bpf(m);
        else if (strcmp(scenario, "cgroup") == 0)
                make_cgroup(m, argument);
        else if (strcmp(scenario, "lost") == 0)
                make_lost(m);
        else {
                errno = EINVAL;
                die(scenario);
        }
}

int main(int argc, char **argv) {
        Maker m = { .n_pages = 256 };
        size_t n_ids[RECORDING_MAX_ATTRS];
        cpu_set_t cpu;
        FILE *f;

        if (argc < 3)
                return 2;
        CPU_ZERO(&cpu);
        CPU_SET(sched_getcpu(), &cpu);
        if (sched_setaffinity(0, sizeof(cpu), &cpu) != 0)
                die("sched_setaffinity");
        make(&m, argv[1], argc > 3 ? argv[3] : "");
        maker_enable(&m, PERF_EVENT_IOC_DISABLE);
        maker_take(&m);
        for (size_t i = 0; i < m.n; i++)
                n_ids[i] = 1;
        f = fopen(argv[2], "w");
        if (!f || !recording_write(f, m.attrs, m.n, m.ids, n_ids, m.records, m.size) || fclose(f) != 0)
                die(argv[2]);
        return EXIT_SUCCESS;
}
