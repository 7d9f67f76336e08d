/* For verbs that observe a program from its exec on: one that waits until its events are there. */
#pragma once

#include <stdint.h>

#include "client/perfctl/base/perfctl.h"

typedef struct Command {
        int pid;     /* 0: none */
        int gate;    /* a byte lets it go */
        int failure; /* errno of its exec comes here, or end of file */
        bool ended;
        int status;         /* as of wait(2), as the next two */
        uint64_t user, sys; /* ns */
} Command;

#define COMMAND_NULL ((Command){ .gate = -1, .failure = -1 })

/* A program that the verb cannot be without. 0, or PERFCTL_USAGE after a message. */
int command_check(const Perfctl *p);
/* Something else is observed, for as long as the command runs: it has a target. --cpu is none. */
bool command_is_beside(const Perfctl *p);
/*
 * With a command what a verb prints goes to stderr, where perf-stat(1) and perf-trace(1) put it: stdout is the command's. JSON is for
 * programs, and goes to stdout all the same.
 */
void command_choose_output(Perfctl *p);
/*
 * The same for a verb with the option `output`, whose file takes it instead. ret_fd: to be given to command_close_output() in any
 * case. 0, or an exit status after a message.
 */
int command_open_output(Perfctl *p, int *ret_fd);
/* What fails is the output's error. */
void command_close_output(Perfctl *p, int fd);
/* 0, or an exit status after a message. */
int command_start(const Perfctl *p, Command *c, char **command);
/* The same; as a shell has it 127 if there is no such program, and 126 if it cannot be executed. */
int command_go(const Perfctl *p, Command *c, char **command);
/* After SIGCHLD: sets `ended`. */
void command_look(Command *c);
/* What it ended with, as a shell says it. */
int command_code(const Command *c);
/* Ends it if it has not ended. */
void command_deinit(Command *c);
