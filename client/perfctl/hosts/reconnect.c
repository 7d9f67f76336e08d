/*
 * What becomes of a host whose process has ended. If it had a stream, and has lost it for a reason that may pass, another process is
 * started for it later, which does all again; with the gap in between it is away. Else it is finished.
 */
#include "client/perfctl/hosts/reconnect.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/hosts/process.h"
#include "client/perfctl/base/quantity.h"

static char *must_copy(const char *text) {
        return must_have(strdup(text));
}

/* Nothing more comes of it. What it is still away for is its last item. */
static void finish(Hosts *s, Host *h) {
        uint64_t now = clock_read(CLOCK_MONOTONIC), wall = clock_read(CLOCK_REALTIME);

        h->again = 0;
        if (!h->is_away || h->is_closing)
                return;
        h->sum.away += now - h->lost;
        free(h->sum.reason);
        h->sum.reason = NULL; /* of the stream before */
        h->gap.to = wall > h->gap.from ? wall : h->gap.from;
        h->is_closing = true;
        if (s->p->out.error == 0 && host_start(s, h) != 0)
                h->status = PERFCTL_FAILED;
}

static uint64_t chance(void) {
        uint64_t number;

        if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
                number = clock_read(CLOCK_MONOTONIC); /* before the kernel has collected randomness, at boot */
        return number;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static bool is_over(const Hosts *s, const Host *h, uint64_t now) {
        return s->is_told || (s->duration > 0 && now >= h->first_began + s->duration);
}

/* CLOCK_MONOTONIC: until when one that is away is tried. */
static uint64_t last_time(const Hosts *s, const Host *h) {
        uint64_t time = s->reconnect < UINT64_MAX - h->lost ? h->lost + s->reconnect : UINT64_MAX;

        return s->duration > 0 ? smaller(time, h->first_began + s->duration) : time;
}

static bool is_tried_again(const Hosts *s, const Host *h, uint64_t now) {
        if (!s->reconnects || !h->has_streamed || !h->passing || is_over(s, h, now))
                return false;
        if (s->count > 0 && h->sum.printed >= s->count)
                return false;
        return !h->is_away || now < last_time(s, h);
}

static void lose(Hosts *s, Host *h, uint64_t now) {
        if (h->is_away)
                return;
        host_retry_lasted(&h->retry, now - h->began);
        h->is_away = true;
        h->lost = now;
        h->sum.disconnected++;
        h->sum.is_inexact = true;
        free(h->gap.why);
        h->gap = (HostGap){ .from = h->wall_last, .why = must_copy(h->passing) };
        (void)host_tell(s, h, PERFCTL_OK, "trying to connect again, at intervals of up to %d s", (int)(HOST_RETRY_MAX / 1000000000));
}

/* What it ended with; what is missing of it is another thing. */
static int judge(const Hosts *s, const Host *h, int status) {
        if (h->sum.disconnected == 0 || (status != PERFCTL_OK && status != PERFCTL_LOST))
                return status;
        return s->may_lose ? PERFCTL_OK : PERFCTL_LOST;
}

/* status: of wait(2). An attempt that is too much is ended by SIGTERM, or by what was typed. */
static int judge_end(Hosts *s, const Host *h, int status, uint64_t now) {
        const bool is_ended = WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT);
        char away[QUANTITY_SIZE];

        if (h->is_away && (is_ended || h->passing)) {
                if (is_over(s, h, now))
                        return judge(s, h, PERFCTL_OK);
                return host_tell(s, h, is_ended ? PERFCTL_UNREACHABLE : WEXITSTATUS(status),
                                 "it was away for %s, and is not tried any more", quantity_show_time(now - h->lost, away));
        }
        if (!WIFSIGNALED(status))
                return judge(s, h, WEXITSTATUS(status));
        fprintf(stderr, "%s: ended by signal %d\n", h->name, WTERMSIG(status));
        return PERFCTL_FAILED;
}

static void end_process(Hosts *s, Host *h, int status) {
        const uint64_t now = clock_read(CLOCK_MONOTONIC);

        if (h->is_away)
                host_show_held(s, h);
        if (h->is_streaming && h->sum.has_end && strcmp(h->sum.reason, "shutdown") == 0 && !h->passing)
                h->passing = must_copy("perfd was stopped");
        h->is_streaming = false;
        h->again = 0;
        if (is_tried_again(s, h, now)) {
                lose(s, h, now);
                h->again = smaller(now + host_retry_next(&h->retry, chance()), last_time(s, h));
        } else {
                h->status = judge_end(s, h, status, now);
                finish(s, h);
        }
        free(h->passing);
        h->passing = NULL;
}

/* Whoever it has left behind, such as a master of ssh's connections, may hold its pipes for longer. */
void host_end(Hosts *s, Host *h, int status) {
        for (int which = 0; which < PIPES; which++) {
                while (host_read(s, h, which))
                        ;
                host_close(s, h, which);
        }
        h->pid = 0;
        h->is_in_item = false;
        s->queues[h - s->list].has_ended = true; /* nobody waits for it, unless it comes again */
        if (!h->is_closing)
                end_process(s, h, status);
}

void host_give_up(Hosts *s, Host *h) {
        h->status = judge(s, h, PERFCTL_OK);
        finish(s, h);
}

uint64_t hosts_until_retry(const Hosts *s, uint64_t wait) {
        uint64_t now = clock_read(CLOCK_MONOTONIC);

        for (size_t i = 0; i < s->n; i++)
                if (s->list[i].again > 0)
                        wait = smaller(wait, s->list[i].again > now ? s->list[i].again - now : 0);
        return wait;
}

/* Those whose time has come: of an attempt, or to give up. */
int hosts_retry(Hosts *s) {
        uint64_t now = clock_read(CLOCK_MONOTONIC);
        int r = 0;

        for (size_t i = 0; i < s->n && r == 0; i++) {
                Host *h = &s->list[i];

                if (h->again == 0 || now < h->again)
                        continue;
                h->again = 0;
                if (h->pid > 0)
                        (void)kill(h->pid, SIGTERM);
                else if (is_over(s, h, now))
                        host_give_up(s, h);
                else {
                        h->again = now < last_time(s, h) ? last_time(s, h) : 0; /* the last attempt has its own time */
                        h->again = h->again == UINT64_MAX ? 0 : h->again;
                        r = host_start(s, h);
                }
        }
        return r;
}
