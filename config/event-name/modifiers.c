/*
 * Letters behind the last colon, with the meaning of perf-list(1). W (a group that falls apart when it does not fit) and
 * b (counted by BPF) are known to perf alone: perfd opens a group whole or says why not.
 */
#include <string.h>

#include "config/event-name/forms.h"

#define LETTERS "ukhHGIDeSpP"
#define LETTERS_OF_PERF LETTERS "Wb"
#define PRECISE_MAX 3

static void modifier_set(EventModifiers *m, char letter) {
        switch (letter) {
        case 'u':
                m->user = true;
                break;
        case 'k':
                m->kernel = true;
                break;
        case 'h':
                m->hypervisor = true;
                break;
        case 'H':
                m->host = true;
                break;
        case 'G':
                m->guest = true;
                break;
        case 'I':
                m->no_idle = true;
                break;
        case 'D':
                m->pinned = true;
                break;
        case 'e':
                m->exclusive = true;
                break;
        case 'S':
                m->group_sample = true;
                break;
        case 'P':
                m->precise_max = true;
                break;
        default:
                m->precise++;
        }
}

int event_group_modifiers_parse(const char *text, size_t from, size_t to, EventModifiers *ret, Explanation *e) {
        EventModifiers m = { .precise = 0 };

        if (from >= to)
                return event_refuse_at(e, text, to, "the modifiers are missing after the colon");
        for (size_t i = from; i < to; i++) {
                if (text[i] == 'W' || text[i] == 'b') {
                        (void)event_refuse_at(e, text, i, "perfd does not support modifier %c of perf", text[i]);
                        if (e)
                                e->reason = "unsupported-event";
                        return REFUSED_UNSUPPORTED;
                }
                if (!strchr(LETTERS, text[i]))
                        return event_refuse_at(e, text, i, "unknown modifier, expected some of u k h H G I D e S p P");
                if (text[i] != 'p' && memchr(text + from, text[i], i - from))
                        return event_refuse_at(e, text, i, "modifier %c occurs twice", text[i]);
                modifier_set(&m, text[i]);
                if (m.precise > PRECISE_MAX)
                        return event_refuse_at(e, text, i, "at most %d p are allowed", PRECISE_MAX);
        }
        *ret = m;
        return 0;
}

int event_modifiers_parse(const char *text, size_t from, EventModifiers *ret, Explanation *e) {
        const char *s = strchr(text + from, 'S');
        int r = event_group_modifiers_parse(text, from, strlen(text), ret, e);

        if (r == 0 && s)
                return event_refuse_at(e, text, (size_t)(s - text), "modifier S must be after the brace of a group, such as "
                        "{a,b}:S");
        return r;
}

bool event_modifiers_claim(const char *letters) {
        return letters[0] && strspn(letters, LETTERS_OF_PERF) == strlen(letters);
}

bool event_modifiers_merge(EventModifiers *to, const EventModifiers *more) {
        to->user |= more->user;
        to->kernel |= more->kernel;
        to->hypervisor |= more->hypervisor;
        to->host |= more->host;
        to->guest |= more->guest;
        to->no_idle |= more->no_idle;
        to->pinned |= more->pinned;
        to->exclusive |= more->exclusive;
        to->group_sample |= more->group_sample;
        to->precise_max |= more->precise_max;
        to->precise += more->precise;
        return to->precise <= PRECISE_MAX;
}
