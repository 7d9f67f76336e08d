/* For the loop: what makes the changes that no client asks for. userdata is the supervisor. Main thread only. */
#pragma once

int supervisor_say_goodbye(void *userdata);      /* supervisor/loop.c */
int supervisor_reload_on_signal(void *userdata);
int supervisor_on_answers(void *userdata);       /* supervisor/changes/rejoin.c */
int supervisor_on_hotplug(void *userdata);       /* supervisor/changes/hotplug.c */
int supervisor_on_notices(void *userdata);       /* supervisor/streams/notices.c */
int supervisor_on_cgroups(void *userdata);       /* supervisor/changes/follow.c */
int supervisor_remove_orphans(void *userdata);   /* supervisor/changes/events.c */
int supervisor_retry_pending(void *userdata);    /* supervisor/configuration/pending.c */
int supervisor_on_losses(void *userdata);        /* supervisor/ledger/losses.c */
