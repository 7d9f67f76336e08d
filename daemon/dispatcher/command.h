/* What main and the dispatcher send each other: commands, notices, reports. */
#pragma once

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/dispatcher/subscriber.h"
#include "daemon/model/task-table.h"
#include "proto/perfd.pb-c.h"

/*
 * The first four are executed before any batch that was pushed after they were posted; the others after everything that was
 * pushed before they were posted.
 */
typedef enum DispatcherCommandKind {
        DISPATCHER_SUBSCRIBE, /* a new subscriber: corked, so that it collects items, but nothing is sent yet */
        DISPATCHER_DESCRIBE,  /* bytes: fields of perfd.v1.Packet for the subscribers of `number` */
        DISPATCHER_LEARN,     /* scan: the tasks that exist */
        DISPATCHER_CUT,       /* the subscriber `id` (0: all) ends at `cut`, which is about to be taken */
        DISPATCHER_BEGIN,     /* the subscriber `id` begins at `cut`: readers use its subscription */
        DISPATCHER_REMOVED,   /* as DESCRIBE, when everything older than `at` has been released */
        DISPATCHER_REPORT,    /* fills *report, posts done */
        DISPATCHER_SHED,      /* limits of queues were lowered */
        /* the subscriber `id`, after CUT, ends with this reason and the closing ledger in bytes, taken `at` */
        DISPATCHER_CLOSE,
        /* no subscriber is waited for any more, except for sending the last packets of those that are closing */
        DISPATCHER_CLOSE_ALL,
        DISPATCHER_PIPE_ON,   /* the CPU `slot` has a reader, of which nothing is older than `at`; posts done */
        DISPATCHER_PIPE_OFF,  /* its reader has ended; posts done */
        DISPATCHER_PIPE_STALLED, /* its reader does not respond: what it pushes is taken, but not waited for, and it misses cuts */
        DISPATCHER_PIPE_CUT,  /* its reader responds again, and what it pushes is behind the last cut */
        DISPATCHER_PING,     /* does nothing; posts done, to show that the dispatcher responds */
        DISPATCHER_QUIT,      /* the thread ends */
} DispatcherCommandKind;

typedef struct DispatcherAsk DispatcherAsk;

typedef struct DispatcherCommand {
        DispatcherCommandKind kind;
        Subscriber *subscriber;
        TaskScan *scan; /* moves */
        uint32_t number;
        uint64_t id;
        uint8_t *bytes; /* malloc; moves */
        size_t n_bytes;
        const char *reason; /* static */
        nsec_t at;
        uint64_t cut; /* DESCRIBE, REMOVED: the last cut; for subscribers that began there or before */
        uint32_t slot;
        struct DispatcherCommand *next; /* in a DispatcherCommandList */
        struct DispatcherReport *report;
        sem_t *done;
        DispatcherAsk *ask; /* NULL, or the ask that has `report` and `done`; the command holds it */
} DispatcherCommand;

/* Commands in the order in which they are to be executed. */
typedef struct DispatcherCommandList {
        DispatcherCommand *first;
        DispatcherCommand *last; /* undefined while the list is empty */
} DispatcherCommandList;

#define DISPATCHER_COMMAND_LIST_NULL ((DispatcherCommandList){ .first = NULL })

static inline void dispatcher_commands_append(DispatcherCommandList *list, DispatcherCommand *command) {
        command->next = NULL;
        if (list->first)
                list->last->next = command;
        else
                list->first = command;
        list->last = command;
}

/* Inserts behind those that are not later. */
static inline void dispatcher_commands_insert(DispatcherCommandList *list, DispatcherCommand *command) {
        DispatcherCommand **p = &list->first;

        if (!list->first || list->last->at <= command->at) {
                dispatcher_commands_append(list, command);
                return;
        }
        while ((*p)->at <= command->at)
                p = &(*p)->next;
        command->next = *p;
        *p = command;
}

/* NULL: the list is empty. */
static inline DispatcherCommand *dispatcher_commands_pop(DispatcherCommandList *list) {
        DispatcherCommand *command = list->first;

        if (command)
                list->first = command->next;
        return command;
}

typedef struct SubscriberRow {
        uint64_t id, matched, sent, queued, dropped[_GAP_REASON_MAX], late;
        char peer[SUBSCRIBER_PEER_SIZE];
        StreamOrder order;
        nsec_t latency;
        bool balanced, is_relayed;
} SubscriberRow;

/* Samples that were too late for every stream that selected them, each counted once. */
typedef struct LateRow {
        uint32_t event, slot;
        uint64_t count;
        uint64_t before_cut; /* of `count`, those that the reader read before this cut: */
        uint64_t cut;        /* the last cut that precedes any of them */
        bool is_open;        /* the last sample may still be found to have been sent, if more items of it follow */
} LateRow;

/* The row of an event and slot in rows that are sorted by these, as in a report; NULL: there is none. */
LateRow *late_rows_find(LateRow *rows, size_t n, uint32_t event, uint32_t slot);

typedef struct DispatcherReport {
        SubscriberRow *subscribers; /* malloc */
        size_t n_subscribers;
        LateRow *late; /* malloc */
        size_t n_late;
} DispatcherReport;

void dispatcher_report_deinit(DispatcherReport *r);

/* Fills the message of a row, which borrows the row, `counts` and `dropped` (N_SUBSCRIBER_DROPS each). */
void subscriber_row_fill(const SubscriberRow *from, Perfd__V1__SubscriberLedger *ret, Perfd__V1__Count *counts,
                         Perfd__V1__Count **dropped);
#define N_SUBSCRIBER_DROPS (_GAP_REASON_MAX + 1) /* reasons: those of gaps, and late */

/* Notices to main. */
typedef enum DispatcherNoticeKind {
        DISPATCHER_WANTS_CLOSE, /* with `reason`: main is to post CLOSE with the closing ledger */
        DISPATCHER_GONE,        /* the subscriber has been freed */
        DISPATCHER_QUEUES_GREW, /* all queues together; at most one is pending, as queues_told says */
        /* `slot`, which was asked at `at`, does not respond; at most one for each time that it is asked, and one pending in all */
        DISPATCHER_PIPE_SILENT,
        DISPATCHER_ANSWERS,     /* an ask for which main no longer waits was answered */
        DISPATCHER_HAS_ROOM,    /* the mailbox has room for commands that main could not post */
} DispatcherNoticeKind;

typedef struct DispatcherNotice {
        DispatcherNoticeKind kind;
        uint64_t id;
        uint32_t number;
        const char *reason; /* static */
        uint32_t slot;
        nsec_t at; /* CLOCK_MONOTONIC */
} DispatcherNotice;
