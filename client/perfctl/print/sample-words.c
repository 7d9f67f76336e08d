/*
 * Tables by the bits of linux/perf_event.h. Numbers that have no name yet are shown as numbers: a newer kernel must not
 * look like an older one that found nothing.
 */
#include "client/perfctl/print/sample-words.h"

#include <assert.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#define N(list) (sizeof(list) / sizeof((list)[0]))

typedef struct Words {
        char *to;
        size_t n;
} Words;

static void put(Words *w, const char *word) {
        size_t n = strlen(word);

        assert(w->n + n < WORDS_MAX);
        memcpy(w->to + w->n, word, n + 1);
        w->n += n;
}

static void put_number(Words *w, const char *before, unsigned number, const char *behind) {
        char text[24];

        (void)snprintf(text, sizeof(text), "%u", number);
        put(w, before);
        put(w, text);
        put(w, behind);
}

/* Names of the bits that are set, joined; true if there is any. */
static bool put_bits(Words *w, unsigned bits, const char *const *names, size_t n, const char *joint, bool joined) {
        for (size_t i = 0; i < n; i++) {
                if (!(bits >> i & 1) || !names[i])
                        continue;
                if (joined)
                        put(w, joint);
                put(w, names[i]);
                joined = true;
        }
        return joined;
}

static void put_op(Words *w, unsigned op) {
        static const char *const names[] = { "N/A", "LOAD", "STORE", "PFETCH", "EXEC" };

        if (!put_bits(w, op, names, N(names), " or ", false))
                put(w, "No");
}

static void put_hit_or_miss(Words *w, bool hit, bool miss) {
        put(w, hit ? " hit" : "");
        put(w, miss ? " miss" : "");
}

/* The old set of levels, or how far away; then the number of a level, which newer hardware gives. */
static void put_level(Words *w, const perfd_data_source *d) {
        static const char *const levels[] = {
                "N/A", NULL, NULL, "L1", "LFB/MAB", "L2", "L3", "Local RAM", "Remote RAM (1 hop)",
                "Remote RAM (2 hops)", "Remote Cache (1 hop)", "Remote Cache (2 hops)", "I/O", "Uncached",
        };
        static const char *const hops[] = {
                NULL, "core, same node", "node, same socket", "socket, same board", "board",
        };
        static const char *const numbers[16] = {
                [PERF_MEM_LVLNUM_CXL] = "CXL", [PERF_MEM_LVLNUM_IO] = "I/O", [PERF_MEM_LVLNUM_ANY_CACHE] = "Any cache",
                [PERF_MEM_LVLNUM_LFB] = "LFB/MAB", [PERF_MEM_LVLNUM_RAM] = "RAM", [PERF_MEM_LVLNUM_PMEM] = "PMEM",
                [PERF_MEM_LVLNUM_NA] = "N/A",
        };
        size_t begin;
        bool any = false;

        put(w, d->remote ? "Remote " : "");
        begin = w->n;
        if (d->hops > 0 && d->hops < N(hops)) {
                put(w, hops[d->hops]);
                put(w, d->level_number ? " " : "");
        } else if (d->hops > 0)
                put_number(w, "", d->hops, " hops ");
        else
                any = put_bits(w, d->level, levels, N(levels), " or ", false);
        if (d->level_number && d->level_number < N(numbers) && !(any && d->level_number == PERF_MEM_LVLNUM_NA)) {
                put(w, any ? " or " : "");
                if (numbers[d->level_number])
                        put(w, numbers[d->level_number]);
                else
                        put_number(w, "L", d->level_number, "");
        }
        if (w->n == begin && !d->remote)
                put(w, "N/A");
        put_hit_or_miss(w, d->level & PERF_MEM_LVL_HIT, d->level & PERF_MEM_LVL_MISS);
}

static void put_snoop(Words *w, const perfd_data_source *d) {
        static const char *const names[] = { "N/A", "None", "Hit", "Miss", "HitM" };
        static const char *const extra[] = { "Fwd", "Peer" };
        bool any = put_bits(w, d->snoop, names, N(names), " or ", false);

        if (!put_bits(w, d->snoop_extra, extra, N(extra), " or ", any))
                put(w, "N/A");
}

static void put_tlb(Words *w, unsigned tlb) {
        static const char *const names[] = { "N/A", NULL, NULL, "L1", "L2", "Walker", "Fault" };

        if (!put_bits(w, tlb, names, N(names), " or ", false))
                put(w, "N/A");
        put_hit_or_miss(w, tlb & PERF_MEM_TLB_HIT, tlb & PERF_MEM_TLB_MISS);
}

static void put_blocked(Words *w, unsigned blocked) {
        static const char *const names[] = { NULL, "Data", "Addr" };

        if (blocked & PERF_MEM_BLK_NA || !put_bits(w, blocked, names, N(names), " ", false))
                put(w, "N/A");
}

void data_source_words(const perfd_data_source *d, char *to) {
        Words w = { .to = to };

        put(&w, "OP ");
        put_op(&w, d->op);
        put(&w, "|LVL ");
        put_level(&w, d);
        put(&w, "|SNP ");
        put_snoop(&w, d);
        put(&w, "|TLB ");
        put_tlb(&w, d->dtlb);
        put(&w, "|LCK ");
        put(&w, d->lock & PERF_MEM_LOCK_NA ? "N/A" : d->lock & PERF_MEM_LOCK_LOCKED ? "Yes" : "No");
        put(&w, "|BLK ");
        put_blocked(&w, d->blocked);
}

bool data_source_says(const char *words) {
        return strcmp(words, "OP N/A|LVL N/A|SNP N/A|TLB N/A|LCK N/A|BLK N/A") != 0;
}

void transaction_words(const perfd_transaction *t, char *to) {
        static const char *const names[] = { "EL", "TX", "SYNC", "ASYNC", "RETRY", "CON", "CAP-WRITE", "CAP-READ" };
        Words w = { .to = to };
        bool any;

        to[0] = '\0';
        any = put_bits(&w, t->flags, names, N(names), "|", false);
        if (t->flags >> N(names)) {
                put(&w, any ? "|" : "");
                put_number(&w, "", t->flags & ~0xffU, "");
        }
}

const char *branch_type_word(const perfd_branch *b) {
        static const char *const names[] = {
                NULL, "COND", "UNCOND", "IND", "CALL", "IND_CALL", "RET", "SYSCALL", "SYSRET", "COND_CALL", "COND_RET",
                "ERET", "IRQ", "SERROR", "NO_TX",
        };
        static const char *const newer[] = {
                "FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "ARCH_1", "ARCH_2", "ARCH_3", "ARCH_4", "ARCH_5",
        };

        if (b->type == PERF_BR_EXTEND_ABI)
                return b->new_type < N(newer) ? newer[b->new_type] : NULL;
        return b->type < N(names) ? names[b->type] : NULL;
}

const char *branch_spec_word(const perfd_branch *b) {
        static const char *const names[] = { NULL, "SPEC_WRONG_PATH", "NON_SPEC_CORRECT_PATH", "SPEC_CORRECT_PATH" };

        return b->spec < N(names) ? names[b->spec] : NULL;
}

const char *branch_privilege_word(const perfd_branch *b) {
        static const char *const names[] = { NULL, "user", "kernel", "hv" };

        return b->privilege < N(names) ? names[b->privilege] : NULL;
}

char branch_prediction(const perfd_branch *b) {
        return b->predicted ? 'P' : b->mispredicted ? 'M' : '-';
}
