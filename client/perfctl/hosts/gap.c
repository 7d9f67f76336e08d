#include "client/perfctl/hosts/gap.h"

#include <stdlib.h>

#include "client/perfctl/print/json.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/base/text.h"
#include "client/perfctl/base/time-text.h"

void host_gap_put_words(Output *o, const HostGap *gap) {
        TimeText wall = { .form = TIME_WALL };
        char lasted[QUANTITY_SIZE];

        output_put_string(o, "--- nothing came since ");
        time_text_put(&wall, o, gap->from, false);
        output_print(o, ", %s: ", quantity_show_time(gap->to > gap->from ? gap->to - gap->from : 0, lasted));
        text_put_string(o, gap->why);
}

void host_gap_put_json(Output *o, const HostGap *gap) {
        Json j = json_of(o);

        json_begin(&j, '{');
        JSON_STRING(&j, "kind", "gap");
        JSON_STRING(&j, "reason", "disconnected");
        JSON_NUMBER(&j, "from", gap->from);
        JSON_NUMBER(&j, "to", gap->to);
        JSON_STRING(&j, "why", gap->why);
        json_end(&j, '}');
        json_end_line(&j);
}

void host_gap_put_line(Perfctl *p, uint64_t to) {
        HostGap gap = p->gap;

        if (!gap.why)
                return;
        p->gap.why = NULL; /* the parent's copy is freed there, and this process ends */
        gap.to = to > gap.from ? to : gap.from;
        if (p->json)
                host_gap_put_json(&p->out, &gap);
        else {
                host_gap_put_words(&p->out, &gap);
                output_put_char(&p->out, '\n');
        }
}
