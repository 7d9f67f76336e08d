/* For all: memory. */
#pragma once

/* Memory that a command line tool cannot go on without: says so and ends, with the status PERFCTL_FAILED. */
void *must_have(void *memory);
