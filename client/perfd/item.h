/*
 * Items of a stream: what all have, and the fields of samples. An item is valid during its callback, and so is what these
 * functions give. None of them fails but as it says.
 *
 * An item is read where it lies, and not before one of these functions asks for something in it. If it is not what its
 * descriptor says, it is then a PERFD_UNKNOWN of no event, in which nothing is; and the call of the library that gave it ends with
 * PERFD_E_PROTOCOL.
 */
#pragma once

#include "declarations.h"
#include "descriptor.h"
#include "field.h"
#include "task.h"

PERFD_BEGIN_DECLARATIONS

typedef struct perfd_item perfd_item;

/* What an item is: a sample, or a side record with the meaning of perf_event_open(2). */
typedef enum perfd_record {
        PERFD_SAMPLE,
        PERFD_COMM,
        PERFD_FORK,
        PERFD_EXIT,
        PERFD_MMAP2,
        PERFD_LOST,
        PERFD_LOST_SAMPLES,
        PERFD_THROTTLE,
        PERFD_UNTHROTTLE,
        PERFD_SWITCH,
        PERFD_NAMESPACES,
        PERFD_KSYMBOL,
        PERFD_BPF_EVENT,
        PERFD_CGROUP,
        PERFD_TEXT_POKE,
        PERFD_AUX,
        PERFD_ITRACE_START,
        PERFD_AUX_OUTPUT_HW_ID,
        PERFD_READ,    /* the counters of an event, read at its interval or when a thread ended */
        PERFD_UNKNOWN, /* a record of the kernel that the daemon does not know */
} perfd_record;

/* PERFD_SAMPLE, or which side record it is: then record.h has its members. */
perfd_record perfd_item_record(const perfd_item *item);
/* NULL for side records of the host. */
const perfd_event *perfd_item_event(const perfd_item *item);
/* ns of the stream's clock. */
uint64_t perfd_item_time(const perfd_item *item);
#define PERFD_CPU_NONE UINT32_MAX /* of a recording whose samples have none */
/* The CPU, process and thread of the occurrence; ids are of the pid namespace in which perfd runs. */
uint32_t perfd_item_cpu(const perfd_item *item);
uint32_t perfd_item_pid(const perfd_item *item);
uint32_t perfd_item_tid(const perfd_item *item);
/*
 * Who a tid of 0 is. Where perfd runs in a pid namespace of its own, the threads outside of it have tid 0, as the idle threads
 * have everywhere, and an item says as much of them as the kernel's record shows.
 */
typedef enum perfd_zero_tid {
        PERFD_ZERO_TID_NONE,    /* the tid is not 0, or 0 is the idle thread, as on the host, or nobody */
        PERFD_ZERO_TID_IDLE,    /* the idle thread of the CPU */
        PERFD_ZERO_TID_OUTSIDE, /* a thread outside of perfd's pid namespace */
        PERFD_ZERO_TID_UNKNOWN, /* one of the two */
} perfd_zero_tid;

perfd_zero_tid perfd_item_zero_tid(const perfd_item *item);
/*
 * Name of the thread: of perfd_item_task(), or that of the idle thread of its CPU, "swapper/1"; empty if not known. Of
 * PERFD_ZERO_TID_OUTSIDE it is "outside", of PERFD_ZERO_TID_UNKNOWN "idle-or-outside". A tid of 0 and an empty
 * name mean no task: PERFD_READ items, and samples that a client emitted without a tid.
 */
perfd_text perfd_item_comm(const perfd_item *item);
/*
 * The thread and the process that did it, as they were then; in the order of time exactly, in that of each CPU as far as
 * was known when it came. NULL if nothing is known of them, and for the idle thread
 * and threads outside of perfd's pid namespace.
 */
const perfd_task *perfd_item_task(const perfd_item *item);
const perfd_process *perfd_item_process(const perfd_item *item);
/*
 * False: it is a sample with nothing else than a time, an event, a CPU, a pid, a tid, fields, and what is known of its task, so that
 * a program need not ask for each other part.
 */
bool perfd_item_has_more(const perfd_item *item);
/* The tracepoint's raw bytes, if the subscription asked for them. */
perfd_text perfd_item_raw(const perfd_item *item);
/* PERFD_CALLCHAIN_KERNEL or _USER: addresses, innermost first. */
size_t perfd_item_callchain(const perfd_item *item, perfd_callchain part, const uint64_t **ret_addresses);
/* PERF_SAMPLE_IP, PERF_SAMPLE_ADDR and PERF_SAMPLE_PERIOD, of a sample whose event requests them; else 0. */
uint64_t perfd_item_ip(const perfd_item *item);
uint64_t perfd_item_address(const perfd_item *item);
uint64_t perfd_item_period(const perfd_item *item); /* how many of perfd_event.unit it stands for; 0 is 1 */

/* What most samples are, at once. */
typedef struct perfd_plain_sample {
        const perfd_event *event;
        uint64_t time, ip, address, period;
        uint64_t sample_id, stream_id;
        uint32_t cpu, pid, tid;
        bool has_callchain;      /* perfd_item_callchain() has it */
        perfd_text comm;
        const uint64_t *numbers; /* of the fields that are numbers, in their order: `count` of each, one behind the other */
        const perfd_text *texts; /* of the others, PERFD_TEXT and PERFD_BYTES, in their order */
} perfd_plain_sample;

/*
 * For programs that show each of millions: what the functions of an item say, in one call. False: it is no sample, or it has dynamic
 * arrays of numbers, texts that could not be read, or parts of sample.h besides these ids; then they are asked.
 */
bool perfd_item_plain(const perfd_item *item, perfd_plain_sample *ret_sample);

/* A field of one sample. */
typedef struct perfd_value {
        const perfd_field *field;
        const uint64_t *numbers; /* number kinds: `count` of them, widened to 64 bits; a copy */
        size_t count;
        perfd_text text;         /* PERFD_TEXT, PERFD_BYTES */
        bool fault;              /* PERFD_TEXT: empty because the probe could not read it */
} perfd_value;

/* Field i of perfd_item_event()->fields, or by its name. False: there is none. */
bool perfd_item_get(const perfd_item *item, size_t i, perfd_value *ret_value);
bool perfd_item_find(const perfd_item *item, const char *name, perfd_value *ret_value);

/*
 * As people read it: names of values and flags, hexadecimal where the kernel's format is, arrays in braces; texts as
 * they are, "(fault)" for one that could not be read. Like snprintf(3): never more than `size` bytes, always ended by a zero, and the return value is the length
 * that the whole text has.
 */
size_t perfd_value_render(const perfd_value *value, char *to, size_t size);

typedef struct perfd_symbol {
        const char *name, *module; /* module: "" if it is in none */
        uint64_t address, size;    /* where it begins, and its bytes up to the next one */
} perfd_symbol;

/* What the caller knows of the addresses of the kernel that the stream comes from. */
typedef struct perfd_symbols {
        size_t size;
        bool (*find)(void *userdata, uint64_t address, perfd_symbol *ret_symbol); /* false: not known */
        void *userdata;
} perfd_symbols;

#define PERFD_SYMBOLS_INIT { .size = sizeof(perfd_symbols) }

/*
 * Field i of perfd_item_event()->fields as the event's own print format shows it: "8,0" of a device, "127.0.0.1:80", the name of
 * a function if `symbols`, which may be NULL, knows it. Numbers in hexadecimal begin with 0x, octal ones with 0, also where the
 * format has none. What the format does not show, or computes under another name, is that of perfd_value_render(), PERFD_BYTES in
 * hexadecimal; so is all, if the event has no print format. The rest as there; 0 also if there is no such field.
 */
size_t perfd_item_render(const perfd_item *item, size_t i, const perfd_symbols *symbols, char *to, size_t size);
/* Whether the print format of an event that the library gave shows field i in another way than perfd_value_render(). */
bool perfd_event_formats(const perfd_event *event, size_t i);
/* The name of one number of this field, as perfd_value_render() has it; 0 if the format has no name for it. */
size_t perfd_field_render(const perfd_field *field, uint64_t number, char *to, size_t size);

PERFD_END_DECLARATIONS
