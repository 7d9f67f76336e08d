/* For json.c: a sample that is what most are, piece by piece, each behind the one before it, where a whole line has its room. */
#pragma once

#include "client/perfctl/item/print.h"

/* Up to the name of its thread. Gives its end, where the next piece belongs. */
char *plain_json_put_head(Output *o, const ItemPlans *plans, const ItemPlan *plan, const perfd_plain_sample *s, uint64_t wall);
/* "fields" */
char *plain_json_put_fields(Output *o, const ItemPlan *plan, char *to, const perfd_item *item, const perfd_plain_sample *s);
/* What is not of its event: of one with callchains up to these, of others all, and the end of the line. */
char *plain_json_put_rest(const ItemPlans *plans, const ItemPlan *plan, char *to, const perfd_plain_sample *s);
/* What stands behind callchains, and the end of the line. */
char *plain_json_put_end(char *to, const perfd_plain_sample *s);
