/*
 * Configurations in YAML: validating one, planning what it would change, and applying it. Each function here waits for its
 * answer, for as long as perfd_client_set_timeout() says. ret_result is to be freed by perfd_result_free(); where its rows are of
 * no interest it may be NULL. Lengths are bytes. All functions: PERFD_E_REFUSED, _CLOSED, _PROTOCOL, _STATE, _INVALID, _TIMEOUT,
 * -ENOMEM.
 */
#pragma once

#include "client.h"
#include "declarations.h"
#include "result.h"

PERFD_BEGIN_DECLARATIONS

/* An error or a warning, and the place in a text that it is about. */
typedef struct perfd_diagnostic_row {
        const char *path;      /* of the text, as the caller named it; "": of a text that has no path */
        uint32_t line, column; /* from 1, in characters; 0: of the text as a whole */
        const char *text;      /* for people: what is wrong, and what to do */
        const char *reason;    /* of a warning: why an event would be pending, for programs; else "" */
} perfd_diagnostic_row;

/* What a change has done: numbers of events. */
typedef struct perfd_reload_row {
        uint32_t added, removed, changed, kept; /* kept: not changed */
        uint32_t pending; /* that cannot be opened now: perfd_event_row.pending */
        uint64_t ring_size; /* bytes that each ring has now, if that was changed; 0: it is as before */
} perfd_reload_row;

/* What differs between an event that runs and what it would be; or a setting of the configuration. */
typedef struct perfd_difference {
        const char *field;          /* as perfd.yaml calls it: "filter", "rings.size" */
        const char *before, *after; /* "": not there */
        bool restart;               /* a setting that takes effect only when perfd is restarted */
} perfd_difference;

/* What becomes of an event. */
typedef enum perfd_change {
        PERFD_CHANGE_ADDED,
        PERFD_CHANGE_REMOVED,
        PERFD_CHANGE_CHANGED,
        PERFD_CHANGE_KEPT, /* no difference */
        PERFD_CHANGE_PENDING, /* it cannot be opened now */
} perfd_change;

/* An event in a plan. */
typedef struct perfd_planned_row {
        perfd_change change;
        uint32_t id;    /* of the running event; 0: there is none */
        const char *name;
        const char *event;
        const char *group;
        bool replaced;  /* changed by a new event with a new id, whose counts begin at 0 */
        const perfd_difference *differences;
        size_t n_differences;
        const char *why, *reason; /* of a pending one: for people, with its place, and for programs; else "" */
} perfd_planned_row;

/*
 * Checks a text: perfd_result_error() and perfd_result_warning(). A text with errors is no failure of the request, which returns 0.
 * A zero byte in the text is PERFD_E_INVALID with its position.
 */
int perfd_validate(perfd_client *client, const char *yaml, size_t length, perfd_result **ret_result);

/* One file. */
typedef struct perfd_config_text {
        const char *path; /* how messages call it */
        const char *yaml;
        size_t length;
} perfd_config_text;

/*
 * The same of a configuration with its drop-ins, in the order in which they are read; the first of n is the main file.
 * PERFD_E_PROTOCOL too: the daemon is older, and looks at the main file only.
 */
int perfd_validate_all(perfd_client *client, const perfd_config_text *texts, size_t n, perfd_result **ret_result);
/* The daemon reads its configuration again, and changes to it as a whole: perfd_result_reload(). PERFD_E_REFUSED: nothing has. */
int perfd_reload(perfd_client *client, perfd_result **ret_result);

/*
 * A text as the daemon's configuration until the next reload, and what that would do. `path` is how messages call it. What is
 * wrong with it is PERFD_E_REFUSED; a zero byte is as for perfd_validate().
 */
int perfd_plan(perfd_client *client, const char *yaml, size_t length, const char *path, perfd_result **ret_result);
/* What perfd_apply() with the same arguments would do. */
int perfd_plan_apply(perfd_client *client, const char *yaml, size_t length, const char *path, bool may_wait,
                     perfd_result **ret_result);
/* may_wait: events that cannot be opened now become pending; without it they are PERFD_E_REFUSED, and nothing is changed. */
int perfd_apply(perfd_client *client, const char *yaml, size_t length, const char *path, bool may_wait,
                perfd_result **ret_result);

/*
 * The same with drop-ins, as perfd_validate_all() has them. PERFD_E_PROTOCOL too: the daemon is older, and has planned, or applied,
 * the main file only.
 */
int perfd_plan_all(perfd_client *client, const perfd_config_text *texts, size_t n, bool may_wait, perfd_result **ret_result);
int perfd_apply_all(perfd_client *client, const perfd_config_text *texts, size_t n, bool may_wait, perfd_result **ret_result);
/* What perfd_reload() would do. On the control socket only: the daemon's files may be nobody else's to read. */
int perfd_plan_reload(perfd_client *client, perfd_result **ret_result);

/* NULL: of another request. */
const perfd_reload_row *perfd_result_reload(const perfd_result *result);

/* Row i, or NULL behind the last one and where the request has no such rows; the result's own. */
const perfd_diagnostic_row *perfd_result_error(const perfd_result *result, size_t i);
const perfd_diagnostic_row *perfd_result_warning(const perfd_result *result, size_t i); /* does not make the text invalid */
const perfd_planned_row *perfd_result_planned(const perfd_result *result, size_t i); /* perfd_plan() */
/*
 * Of a plan what differs beside the events; of perfd_reload(), perfd_apply() and perfd_status() what takes effect only when perfd is
 * restarted.
 */
const perfd_difference *perfd_result_setting(const perfd_result *result, size_t i);

PERFD_END_DECLARATIONS
