/*
 * Parts of samples that an event's attr asked for; 0, NULL or empty where it did not. All functions: any item may be asked, in
 * its callback only; what they give is valid until the callback returns.
 */
#pragma once

#include "declarations.h"
#include "field.h"
#include "item.h"

PERFD_BEGIN_DECLARATIONS

/* running < enabled: scale by enabled / running. running 0: not counted, which is not 0. */
typedef struct perfd_read_value {
        uint64_t value;
        uint64_t enabled, running; /* ns */
        uint64_t lost;             /* samples of it that the kernel could not write */
} perfd_read_value;

/* An entry of the branch stack: addresses. */
typedef struct perfd_branch {
        uint64_t from, to;
        bool mispredicted, predicted; /* neither: not known */
        bool in_transaction, abort;
        uint32_t cycles;              /* since the branch before; 0: not known */
        uint32_t type, spec, new_type, privilege; /* PERF_BR_*, _SPEC_*, _NEW_*, _PRIV_* of linux/perf_event.h */
        uint64_t counters;            /* as the CPU packs them */
} perfd_branch;

/* PERF_SAMPLE_REGS_USER, PERF_SAMPLE_REGS_INTR. */
typedef struct perfd_registers {
        uint32_t abi;     /* PERF_SAMPLE_REGS_ABI_*; 0: there were none */
        uint32_t machine; /* EM_* of elf.h */
        uint64_t mask;
        const uint64_t *values; /* by rising bit of mask */
        size_t n_values;
} perfd_registers;

/* The cost of a sample, in a unit of the hardware, such as cycles of a load. */
typedef struct perfd_weight {
        uint64_t full;             /* PERF_SAMPLE_WEIGHT; or the others, PERF_SAMPLE_WEIGHT_STRUCT */
        uint32_t var1, var2, var3;
} perfd_weight;

/* PERF_SAMPLE_DATA_SRC: the members of union perf_mem_data_src, with the values PERF_MEM_* of linux/perf_event.h. */
typedef struct perfd_data_source {
        uint64_t raw;
        uint32_t op, level, snoop, lock, dtlb, level_number, remote, snoop_extra, blocked, hops;
} perfd_data_source;

/* PERF_SAMPLE_TRANSACTION. */
typedef struct perfd_transaction {
        uint32_t flags; /* PERF_TXN_* */
        uint32_t abort_code;
} perfd_transaction;

/*
 * Returns the number of values of a sample (PERF_SAMPLE_READ) or of a PERFD_READ item, in the order of
 * perfd_item_event()->counters; 0: none.
 */
size_t perfd_item_read(const perfd_item *item, const perfd_read_value **ret_values);
/* Returns the number of branches (PERF_SAMPLE_BRANCH_STACK), the newest first; 0: none. */
size_t perfd_item_branches(const perfd_item *item, const perfd_branch **ret_branches);
/* The index of the newest branch in the hardware's stack (PERF_SAMPLE_BRANCH_HW_INDEX); false: not known. */
bool perfd_item_branch_hw_index(const perfd_item *item, uint64_t *ret_index);
/* PERF_SAMPLE_REGS_USER and PERF_SAMPLE_REGS_INTR; NULL: the sample has none. */
const perfd_registers *perfd_item_user_registers(const perfd_item *item);
const perfd_registers *perfd_item_interrupt_registers(const perfd_item *item);
/* Of a bit of perfd_registers.mask, as perf-script(1) calls it: "IP", "x0"; NULL: not known. */
const char *perfd_register_name(uint32_t machine, unsigned bit);
/* PERF_SAMPLE_STACK_USER: the bytes from the stack pointer upwards; empty: none. */
perfd_text perfd_item_user_stack(const perfd_item *item);
/* PERF_SAMPLE_WEIGHT or _WEIGHT_STRUCT, PERF_SAMPLE_DATA_SRC, PERF_SAMPLE_TRANSACTION; NULL: the sample has none. */
const perfd_weight *perfd_item_weight(const perfd_item *item);
const perfd_data_source *perfd_item_data_source(const perfd_item *item);
const perfd_transaction *perfd_item_transaction(const perfd_item *item);
/* PERF_SAMPLE_PHYS_ADDR. */
uint64_t perfd_item_physical_address(const perfd_item *item);
/* PERF_SAMPLE_CGROUP: the inode number of the cgroup's directory. */
uint64_t perfd_item_cgroup_id(const perfd_item *item);
/* PERF_SAMPLE_DATA_PAGE_SIZE and PERF_SAMPLE_CODE_PAGE_SIZE, in bytes. */
uint64_t perfd_item_data_page_size(const perfd_item *item);
uint64_t perfd_item_code_page_size(const perfd_item *item);
/* PERF_SAMPLE_AUX: a part of the AUX area; empty: none. */
perfd_text perfd_item_aux_bytes(const perfd_item *item);
/* PERF_SAMPLE_ID. */
uint64_t perfd_item_sample_id(const perfd_item *item);

PERFD_END_DECLARATIONS
