/*
 * The word is `state` of the per-CPU `context_tracking`, since Linux 6.0, with a bit that is set while RCU watches. Where it
 * lies is not said to programs unless the kernel knows the addresses of its data (CONFIG_KALLSYMS_ALL); but both it and
 * `runqueues` are in one section, whose layout BTF has, and the run queue of a CPU is what the task that runs there belongs
 * to. So one program, run once on each CPU, follows current->se.cfs_rq->rq and goes on by the distance between the two.
 *
 * What would be wrong then is noticed: of the CPU that runs a program RCU has to be watching. The first program keeps no
 * address of which that is not so; the second one looks at its own CPU each time, and all is over if it seems idle.
 */
#include "daemon/kernel/host/idle-cpus.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define CPUS_MAX 1024u /* the verifier keeps 5 branches of each round of the loop in mind, and no more than 8192 */
#define SEEN 0x10000   /* the programs were here; beside the bit */

/* Between us and the programs. */
typedef struct Cell {
        uint64_t address; /* of the CPU's word; 0: not known */
        uint64_t state;   /* 0: not wanted; else, after a look, SEEN and the bit if RCU was watching */
} Cell;

struct IdleCpus {
        Cell *cells;
        size_t n, length; /* length in bytes, as it is mapped */
        int map, find, look;
};

/* What the kernel says of itself. */
typedef struct Layout {
        int32_t run_queue[2]; /* offsets to follow from a task: to its cfs_rq, and from there to rq */
        int32_t to_word;      /* from the run queue */
        int32_t watching;     /* the bit */
} Layout;

/* ---- where things are -------------------------------------------------------------------------------------------- */

static int find_member(const struct btf *btf, const char *of, const char *name, int32_t *offset) {
        int32_t id = btf__find_by_name_kind(btf, of, BTF_KIND_STRUCT);
        const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

        for (uint32_t i = 0; t && i < btf_vlen(t); i++)
                if (strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), name) == 0) {
                        *offset += (int32_t)(btf_member_bit_offset(t, i) / 8);
                        return 0;
                }
        return -ENOENT;
}

static int find_per_cpu(const struct btf *btf, const char *name, int64_t *ret_offset) {
        int32_t id = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
        const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

        for (uint32_t i = 0; t && i < btf_vlen(t); i++) {
                const struct btf_var_secinfo *v = btf_var_secinfos(t) + i;
                const struct btf_type *variable = btf__type_by_id(btf, v->type);

                if (variable && strcmp(btf__name_by_offset(btf, variable->name_off), name) == 0) {
                        *ret_offset = v->offset;
                        return 0;
                }
        }
        return -ENOENT;
}

/* The states of a CPU are below this one, which is the bit; Linux 6.12 has renamed it. */
static int find_watching(const struct btf *btf, int32_t *ret) {
        int32_t id = btf__find_by_name_kind(btf, "ctx_state", BTF_KIND_ENUM);
        const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

        for (uint32_t i = 0; t && i < btf_vlen(t); i++) {
                const char *name = btf__name_by_offset(btf, btf_enum(t)[i].name_off);

                if (strcmp(name, "CT_STATE_MAX") == 0 || strcmp(name, "CONTEXT_MAX") == 0) {
                        *ret = btf_enum(t)[i].val;
                        return *ret > 0 && *ret < SEEN && (*ret & (*ret - 1)) == 0 ? 0 : -ENOENT;
                }
        }
        return -ENOENT;
}

static int find_layout(const struct btf *btf, Layout *l) {
        int64_t word, run_queue;

        *l = (Layout){ .to_word = 0 };
        if (find_member(btf, "task_struct", "se", &l->run_queue[0]) < 0 ||
            find_member(btf, "sched_entity", "cfs_rq", &l->run_queue[0]) < 0 ||
            find_member(btf, "cfs_rq", "rq", &l->run_queue[1]) < 0 ||
            find_member(btf, "context_tracking", "state", &l->to_word) < 0 ||
            find_per_cpu(btf, "context_tracking", &word) < 0 || find_per_cpu(btf, "runqueues", &run_queue) < 0 ||
            find_watching(btf, &l->watching) < 0)
                return -ENOENT;
        l->to_word += (int32_t)(word - run_queue);
        return 0;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

#define INSN(c, d, s, o, i) ((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define SET(d, i) INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define COPY(d, s) INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define MATH(op, d, i) INSN(BPF_ALU64 | (op) | BPF_K, d, 0, 0, i)
#define ADD_REGISTER(d, s) INSN(BPF_ALU64 | BPF_ADD | BPF_X, d, s, 0, 0)
#define LOAD(size, d, s, o) INSN(BPF_LDX | BPF_MEM | (size), d, s, o, 0)
#define STORE(size, d, o, s) INSN(BPF_STX | BPF_MEM | (size), d, s, o, 0)
#define JUMP(op, d, i, o) INSN(BPF_JMP | (op) | BPF_K, d, 0, o, i)
#define CALL(f) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define CELLS(d, map) INSN(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_MAP_VALUE, 0, map), INSN(0, 0, 0, 0, 0)
#define RETURN(i) SET(BPF_REG_0, i), INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Eight or four bytes at this many behind a register, to the stack; if there are none r0 is not 0, and they are. */
#define SCRATCH (-8)
#define READ(n, at, o)                                                                                                    \
        COPY(BPF_REG_3, at), MATH(BPF_ADD, BPF_REG_3, o), SET(BPF_REG_2, n), COPY(BPF_REG_1, BPF_REG_10),                  \
                MATH(BPF_ADD, BPF_REG_1, SCRATCH), CALL(BPF_FUNC_probe_read_kernel)
#define READ_INSNS 6

static int load_program(const char *name, const struct bpf_insn *insns, size_t n) {
        LIBBPF_OPTS(bpf_prog_load_opts, options);

        return bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, name, "GPL", insns, n, &options);
}

/* cells[this CPU].address, if RCU watches there; the answer is 1 then. */
static int load_find(const Layout *l, int map, size_t n_cells) {
        const struct bpf_insn insns[] = {
                INSN(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, SCRATCH, 0),
                CALL(BPF_FUNC_get_current_task),
                READ(8, BPF_REG_0, l->run_queue[0]),
                LOAD(BPF_DW, BPF_REG_6, BPF_REG_10, SCRATCH),
                READ(8, BPF_REG_6, l->run_queue[1]),
                LOAD(BPF_DW, BPF_REG_6, BPF_REG_10, SCRATCH),
                MATH(BPF_ADD, BPF_REG_6, l->to_word),
                READ(4, BPF_REG_6, 0),
                JUMP(BPF_JNE, BPF_REG_0, 0, 12), /* to the end */
                LOAD(BPF_W, BPF_REG_1, BPF_REG_10, SCRATCH),
                MATH(BPF_AND, BPF_REG_1, l->watching),
                JUMP(BPF_JEQ, BPF_REG_1, 0, 9), /* to the end */
                CALL(BPF_FUNC_get_smp_processor_id),
                JUMP(BPF_JGE, BPF_REG_0, (int32_t)n_cells, 7), /* to the end */
                CELLS(BPF_REG_7, map),
                MATH(BPF_MUL, BPF_REG_0, sizeof(Cell)),
                ADD_REGISTER(BPF_REG_7, BPF_REG_0),
                STORE(BPF_DW, BPF_REG_7, offsetof(Cell, address), BPF_REG_6),
                RETURN(1),
                RETURN(0), /* the end */
        };

        return load_program("perfd_find", insns, ARRAY_SIZE(insns));
}

/* Each cell that is wanted and has an address. The answer is whether this CPU is among them, and seems to be idle. */
static int load_look(const Layout *l, int map, size_t n_cells) {
        const struct bpf_insn insns[] = {
                SET(BPF_REG_9, 0), /* the answer */
                SET(BPF_REG_6, 0), /* CPU */
                CELLS(BPF_REG_7, map),
                LOAD(BPF_DW, BPF_REG_1, BPF_REG_7, offsetof(Cell, state)), /* 4: the loop */
                JUMP(BPF_JEQ, BPF_REG_1, 0, 11 + READ_INSNS),              /* to the next one */
                LOAD(BPF_DW, BPF_REG_8, BPF_REG_7, offsetof(Cell, address)),
                JUMP(BPF_JEQ, BPF_REG_8, 0, 9 + READ_INSNS), /* to the next one */
                READ(4, BPF_REG_8, 0),
                JUMP(BPF_JNE, BPF_REG_0, 0, 8), /* to the next one */
                LOAD(BPF_W, BPF_REG_8, BPF_REG_10, SCRATCH),
                MATH(BPF_AND, BPF_REG_8, l->watching),
                CALL(BPF_FUNC_get_smp_processor_id),
                INSN(BPF_JMP | BPF_JNE | BPF_X, BPF_REG_0, BPF_REG_6, 2, 0), /* to what is not this CPU */
                JUMP(BPF_JNE, BPF_REG_8, 0, 1),
                SET(BPF_REG_9, 1),
                MATH(BPF_OR, BPF_REG_8, SEEN),
                STORE(BPF_DW, BPF_REG_7, offsetof(Cell, state), BPF_REG_8),
                MATH(BPF_ADD, BPF_REG_7, sizeof(Cell)), /* the next one */
                MATH(BPF_ADD, BPF_REG_6, 1),
                JUMP(BPF_JLT, BPF_REG_6, (int32_t)n_cells, -(16 + READ_INSNS)), /* to the loop */
                COPY(BPF_REG_0, BPF_REG_9),
                INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
        };

        return load_program("perfd_look", insns, ARRAY_SIZE(insns));
}

/* ---- what is called ---------------------------------------------------------------------------------------------- */

static int refuse_call(Explanation *e, const char *what) {
        switch (errno) {
        case EPERM:
        case EACCES:
                return refuse(e, REFUSED_DENIED, "no-bpf", "%s: %m; it requires bpf(2), with CAP_BPF and CAP_PERFMON or with "
                        "CAP_SYS_ADMIN, when perfd starts", what);
        default:
                return refuse(e, REFUSED_UNSUPPORTED, "no-bpf", "%s: %m", what);
        }
}

static int open_cells(IdleCpus *i, Explanation *e) {
        LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
        void *cells;

        i->map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "perfd_cpus", sizeof(uint32_t), (uint32_t)(i->n * sizeof(Cell)), 1, &options);
        if (i->map < 0)
                return refuse_call(e, "a BPF map");
        cells = mmap(NULL, i->length, PROT_READ | PROT_WRITE, MAP_SHARED, i->map, 0);
        if (cells == MAP_FAILED)
                return refuse_call(e, "mapping a BPF map");
        i->cells = cells;
        return 0;
}

static int open_programs(IdleCpus *i, const Layout *l, Explanation *e) {
        i->find = load_find(l, i->map, i->n);
        if (i->find >= 0)
                i->look = load_look(l, i->map, i->n);
        return i->find < 0 || i->look < 0 ? refuse_call(e, "a BPF program that reads the states of CPUs") : 0;
}

static int read_layout(Layout *l, Explanation *e) {
        struct btf *btf = btf__load_vmlinux_btf();
        int r;

        if (!btf)
                return refuse_call(e, "/sys/kernel/btf/vmlinux");
        r = find_layout(btf, l);
        btf__free(btf);
        return r == 0 ? 0 : refuse(e, REFUSED_UNSUPPORTED, "no-bpf",
                                   "this kernel lacks context_tracking (Linux 6.0), or its address is not known");
}

int idle_cpus_open(uint32_t n_cpus, IdleCpus **ret, Explanation *e) {
        _cleanup_(idle_cpus_freep) IdleCpus *i = calloc(1, sizeof(*i));
        const size_t page = (size_t)sysconf(_SC_PAGESIZE);
        struct rlimit limit;
        Layout layout;
        int r;

        if (!i)
                return error_origin(-ENOMEM);
        if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
                return error_origin(-errno);
        i->map = i->find = i->look = -1;
        i->n = n_cpus;
        i->length = (n_cpus * sizeof(Cell) + page - 1) / page * page;
        if (n_cpus > CPUS_MAX)
                return refuse(e, REFUSED_UNSUPPORTED, "no-bpf", "%u CPUs are more than %u", n_cpus, CPUS_MAX);
        libbpf_set_print(NULL);
        r = open_cells(i, e); /* first: where that is forbidden nothing else has to be read */
        if (r == 0)
                r = read_layout(&layout, e);
        if (r == 0)
                r = open_programs(i, &layout, e);
        (void)setrlimit(RLIMIT_MEMLOCK, &limit); /* libbpf may have taken it off, for kernels that need that; those have no word */
        if (r == 0)
                *ret = TAKE_PTR(i);
        return r;
}

IdleCpus *idle_cpus_free(IdleCpus *i) {
        if (!i)
                return NULL;
        if (i->cells)
                munmap(i->cells, i->length);
        close_fd(i->look);
        close_fd(i->find);
        close_fd(i->map);
        free(i);
        return NULL;
}

int idle_cpus_find(IdleCpus *i, uint32_t cpu) {
        LIBBPF_OPTS(bpf_test_run_opts, options, .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);
        int r;

        if (cpu >= i->n)
                return -ENODEV;
        r = bpf_prog_test_run_opts(i->find, &options);
        return r < 0 ? r : options.retval == 1 ? 0 : -ENODATA;
}

void idle_cpus_want(IdleCpus *i, uint32_t cpu) {
        if (cpu < i->n)
                i->cells[cpu].state = 1;
}

int idle_cpus_look(IdleCpus *i) {
        LIBBPF_OPTS(bpf_test_run_opts, options);
        int here = sched_getcpu(), r;

        if (here >= 0)
                idle_cpus_want(i, (uint32_t)here);
        atomic_thread_fence(memory_order_seq_cst); /* behind the caller's clock */
        r = bpf_prog_test_run_opts(i->look, &options);
        atomic_thread_fence(memory_order_seq_cst); /* before the rings: RCU's side has such fences around idle */
        return r < 0 ? r : options.retval == 0 ? 0 : -EPROTO;
}

bool idle_cpus_take(IdleCpus *i, uint32_t cpu) {
        uint64_t state = cpu < i->n ? i->cells[cpu].state : 0;

        if (state > 0)
                i->cells[cpu].state = 0;
        return state == SEEN;
}
