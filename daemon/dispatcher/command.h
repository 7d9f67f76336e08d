/* What main and the dispatcher say to each other: commands, notices, reports. */
#pragma once

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/dispatcher/subscriber.h"
#include "daemon/model/task-table.h"
#include "proto/perfd.pb-c.h"

/*
 * The first four come before every batch that was pushed after they were posted, the others follow everything that was
 * pushed before they were posted.
 */
typedef enum DispatcherCommandKind {
        DISPATCHER_SUBSCRIBE, /* subscriber: held, so that it collects but hears nothing yet */
        DISPATCHER_DESCRIBE,  /* bytes: fields of perfd.v1.Packet for the subscribers of `number` */
        DISPATCHER_LEARN,     /* scan: the tasks that are there */
        DISPATCHER_CUT,       /* the subscriber `id` (0: all) ends at `cut`, which is about to be taken */
        DISPATCHER_BEGIN,     /* the subscriber `id` hears: the readers know what it wants */
        DISPATCHER_REMOVED,   /* as DESCRIBE, for when everything older than `at` was released */
        DISPATCHER_REPORT,    /* fills *report, posts done */
        DISPATCHER_SHED,      /* queues hold more than they may by now */
        DISPATCHER_CLOSE,     /* the subscriber `id`, behind CUT, with reason, closing ledger in bytes, `at` */
        DISPATCHER_CLOSE_ALL, /* nobody is waited for any more, but for the last packets of those that are closed */
        DISPATCHER_PIPE_ON,   /* the CPU `slot` has a reader, and nothing of it is older than `at`; posts done */
        DISPATCHER_PIPE_OFF,  /* its reader has ended; posts done */
        DISPATCHER_PIPE_STALLED, /* its reader does not answer: what it pushes is taken, but not waited for, and it misses cuts */
        DISPATCHER_PIPE_CUT,  /* it is on again, and what comes from it is behind the last cut */
        DISPATCHER_SPEAK,     /* nothing, but that it answers; posts done */
        DISPATCHER_QUIT,      /* the thread ends */
} DispatcherCommandKind;

typedef struct DispatcherAsk DispatcherAsk;

typedef struct DispatcherCommand {
        DispatcherCommandKind kind;
        Subscriber *subscriber;
        TaskScan *scan; /* moves */
        uint32_t number;
        uint64_t id;
        uint8_t *bytes; /* malloc, moves */
        size_t n_bytes;
        const char *reason; /* static */
        nsec_t at;
        uint64_t cut; /* DESCRIBE, REMOVED: the last one, for those who began there or before */
        uint32_t slot;
        struct DispatcherCommand *next; /* waiting */
        struct DispatcherReport *report;
        sem_t *done;
        DispatcherAsk *ask; /* NULL, or where these two are: it is held by the mail */
} DispatcherCommand;

/* Those that wait, in the order in which they came. */
typedef struct DispatcherMails {
        DispatcherCommand *first;
        DispatcherCommand *last; /* while there are some */
} DispatcherMails;

#define DISPATCHER_MAILS_NULL ((DispatcherMails){ .first = NULL })

static inline void dispatcher_mails_append(DispatcherMails *list, DispatcherCommand *mail) {
        mail->next = NULL;
        if (list->first)
                list->last->next = mail;
        else
                list->first = mail;
        list->last = mail;
}

/* Behind those that are not later. */
static inline void dispatcher_mails_insert(DispatcherMails *list, DispatcherCommand *mail) {
        DispatcherCommand **p = &list->first;

        if (!list->first || list->last->at <= mail->at) {
                dispatcher_mails_append(list, mail);
                return;
        }
        while ((*p)->at <= mail->at)
                p = &(*p)->next;
        mail->next = *p;
        *p = mail;
}

/* NULL: there is none. */
static inline DispatcherCommand *dispatcher_mails_pop(DispatcherMails *list) {
        DispatcherCommand *mail = list->first;

        if (mail)
                list->first = mail->next;
        return mail;
}

typedef struct SubscriberRow {
        uint64_t id, matched, sent, queued, dropped[_GAP_REASON_MAX], late;
        char peer[SUBSCRIBER_PEER_SIZE];
        StreamOrder order;
        bool balanced;
} SubscriberRow;

/* Samples that came too late for every stream that wanted them, each once. */
typedef struct LateRow {
        uint32_t event, slot;
        uint64_t count;
        uint64_t before_cut; /* of these, who came to the reader before this cut: */
        uint64_t cut;        /* the last one that any of them came behind */
        bool is_open;        /* the last one may still turn out to have been sent, if more items of it come */
} LateRow;

/* One of rows that are in the order of event and slot, as those of a report; NULL: there is none. */
LateRow *late_rows_find(LateRow *rows, size_t n, uint32_t event, uint32_t slot);

typedef struct DispatcherReport {
        SubscriberRow *subscribers; /* malloc */
        size_t n_subscribers;
        LateRow *late; /* malloc */
        size_t n_late;
} DispatcherReport;

void dispatcher_report_deinit(DispatcherReport *r);

/* A row as its message, which borrows the row, `counts` and `dropped` (N_SUBSCRIBER_DROPS each). */
void subscriber_row_fill(const SubscriberRow *from, Perfd__V1__SubscriberLedger *ret, Perfd__V1__Count *counts,
                         Perfd__V1__Count **dropped);
#define N_SUBSCRIBER_DROPS (_GAP_REASON_MAX + 1) /* reasons: those of gaps, late */

/* To main. */
typedef enum DispatcherNoticeKind {
        DISPATCHER_WANTS_CLOSE, /* for `reason`: main is to post CLOSE with the closing ledger */
        DISPATCHER_GONE,        /* the subscriber is no more */
        DISPATCHER_QUEUES_GREW, /* of all; none is on its way while queues_told says so */
        DISPATCHER_PIPE_SILENT, /* `slot`, which was asked `at`, does not answer; once for each time that it is asked, one at a time */
        DISPATCHER_ANSWERS,     /* what main has asked and did not wait for */
        DISPATCHER_HAS_ROOM,    /* for mails: main has some that it could not post */
} DispatcherNoticeKind;

typedef struct DispatcherNotice {
        DispatcherNoticeKind kind;
        uint64_t id;
        uint32_t number;
        const char *reason; /* static */
        uint32_t slot;
        nsec_t at; /* CLOCK_MONOTONIC */
} DispatcherNotice;
