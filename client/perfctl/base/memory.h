/* For all: memory. */
#pragma once

/* Memory that a command line tool cannot go on without: says so and ends, with the status PERFCTL_FAILED. */
void *must_have(void *memory);
/* The same of a call that has no other reason to fail than memory: its code, 0 or -ENOMEM. */
void must_be_done(int code);
