/*
 * mem:ADDR[/LEN][:ACCESS][:MODIFIERS], with perf's defaults: four bytes, read and written. "mem:0x10:u" has no access
 * and a modifier, as in perf: letters of access are no modifiers. Execution has the length that perf gives it, which is
 * the only one that x86 takes.
 */
#include <linux/hw_breakpoint.h>
#include <string.h>

#include "config/event-name/forms.h"
#include "daemon/base/cleanup.h"

bool event_claims_breakpoint(const char *text) {
        return event_base_is(text, "mem");
}

static int access_parse(const char *text, size_t from, size_t to, EventName *ret, Explanation *e) {
        for (size_t i = from; i < to; i++) {
                uint32_t bit = text[i] == 'r' ? HW_BREAKPOINT_R : text[i] == 'w' ? HW_BREAKPOINT_W : HW_BREAKPOINT_X;

                if (ret->access & bit)
                        return event_refuse_at(e, text, i, "access %c occurs twice", text[i]);
                ret->access |= bit;
        }
        if (ret->access & HW_BREAKPOINT_X && ret->access != HW_BREAKPOINT_X)
                return event_refuse_at(e, text, from, "access x excludes r and w: a breakpoint is on execution, or on reading "
                        "and writing");
        return 0;
}

static int length_parse(const char *text, size_t from, size_t to, EventName *ret, Explanation *e) {
        uint64_t length;

        if (!event_number(text, from, to, &length) || length > 8 || length == 0 || (length & (length - 1)) != 0)
                return event_refuse_at(e, text, from, "a breakpoint is 1, 2, 4 or 8 bytes long");
        ret->length = (uint32_t)length;
        return 0;
}

int event_parse_breakpoint(const char *text, EventName *ret, Explanation *e) {
        size_t from = strlen("mem:"), end, length_at = 0;
        int r;

        ret->kind = EVENT_NAME_BREAKPOINT;
        if (strlen(text) < from)
                return event_refuse_at(e, text, strlen(text), "expected mem:ADDRESS[/LENGTH][:ACCESS]");
        end = from + strcspn(text + from, "/:");
        if (!event_number(text, from, end, &ret->address))
                return event_refuse_at(e, text, from, "the address of a breakpoint is a 64-bit number, such as 0x7f00");
        if (text[end] == '/') {
                length_at = end + 1;
                end = length_at + strcspn(text + length_at, ":");
                r = length_parse(text, length_at, end, ret, e);
                if (r != 0)
                        return r;
        }
        if (text[end] == ':') {
                size_t letters = end + 1, n = strspn(text + letters, "rwx");

                if (n > 0 && (text[letters + n] == ':' || text[letters + n] == '\0')) {
                        r = access_parse(text, letters, letters + n, ret, e);
                        if (r != 0)
                                return r;
                        end = letters + n;
                } else if (n > 0) {
                        return event_refuse_at(e, text, letters + n, "unknown access, expected some of r w, or x");
                }
        }
        if (ret->access == 0)
                ret->access = HW_BREAKPOINT_RW;
        if (ret->access == HW_BREAKPOINT_X && ret->length != 0 && ret->length != sizeof(long))
                return event_refuse_at(e, text, length_at, "a breakpoint on execution has no length, or %zu",
                                       sizeof(long));
        if (ret->length == 0)
                ret->length = ret->access == HW_BREAKPOINT_X ? sizeof(long) : HW_BREAKPOINT_LEN_4;
        if (ret->access != HW_BREAKPOINT_X && ret->address > UINT64_MAX - ret->length + 1)
                return event_refuse_at(e, text, from, "the %u bytes of this breakpoint would end after the last address",
                                       ret->length);
        return text[end] ? event_modifiers_parse(text, end + 1, &ret->modifiers, e) : 0;
}
