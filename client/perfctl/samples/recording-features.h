/* For verbs that show a recording: the sections of its header, as JSON and as text. */
#pragma once

#include "client/perfctl/print/json.h"

/* A member of the object for each that is there. 0; else what perfd_recording_visit_feature() returned. */
int features_put_json(Json *j, perfd_recording *r);
/* Lines: name and value, with what it consists of indented below. */
int features_put_text(Output *o, perfd_recording *r);
