/* Events as the configuration has them. */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "daemon/base/error.h"
#include "daemon/model/event.h"
#include "daemon/supervisor/events/events.h"

/* What a configured target means. -ENOMEM. */
int spec_set_target(EventSpec *spec, const ConfigTarget *t);
/* -ENOMEM */
int spec_from_config(const Config *c, const ConfigEvent *from, EventSpec *ret);
/* Where in the configuration what was refused of an event stands: its filter, an item of its target, or the event. */
ConfigPlace place_of(const Config *c, const ConfigEvent *from, const Explanation *e);
/* The same in front of why it was refused. */
void place_explanation(const Config *c, const ConfigEvent *from, Explanation *e);
/* Refused with this: it may be another answer when the host has changed. An error stays one. */
bool refusal_may_pass(int r);
/* Into a list: a note of what would be pending, or an error, which everything is of a strict configuration. */
void config_event_refuse(const Config *c, const ConfigEvent *event, int refusal, const Explanation *e, ConfigDiagnostics *m);
