/*
 * Processes that are gone before anybody could look at them.
 *
 *   short-life N FOLDER... -- PROGRAM...     makes N children, four at a time. Child i moves itself into the cgroup of
 *                                            FOLDER i, executes PROGRAM i (both in turns), and that is all.
 *   short-life                               what they execute: three calls of getppid(2), then the end
 *
 * Linked statically, so that an exec is short. On stdin it waits for a line; on stdout it says "ready PID" before, and
 * for each child its pid and the microseconds from before its fork until its end was seen; then "done". Status 1 if a
 * child does not end with 0.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AT_A_TIME 4
#define CALLS 3

typedef struct Life {
        pid_t pid;
        long long begin; /* us */
} Life;

static long long now(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (long long)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void live(const char *folder, char *program) {
        char path[4096];
        int fd;

        (void)snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1)
                _exit(2);
        execv(program, (char *[]){ program, NULL });
        _exit(3);
}

static int bury(Life *lives) {
        int status;
        pid_t pid = wait(&status);

        for (int i = 0; i < AT_A_TIME; i++)
                if (lives[i].pid == pid) {
                        printf("%d %lld\n", (int)pid, now() - lives[i].begin);
                        lives[i].pid = 0;
                        return status;
                }
        return 1;
}

int main(int argc, char **argv) {
        Life lives[AT_A_TIME] = { { .pid = 0 } };
        int n, n_folders = 0, n_programs, failed = 0;
        char line[16];

        if (argc == 1) {
                for (int i = 0; i < CALLS; i++)
                        (void)syscall(SYS_getppid);
                return 0;
        }
        n = atoi(argv[1]);
        while (2 + n_folders < argc && strcmp(argv[2 + n_folders], "--") != 0)
                n_folders++;
        n_programs = argc - 3 - n_folders;
        if (n_folders < 1 || n_programs < 1)
                return 2;
        printf("ready %d\n", (int)getpid());
        fflush(stdout);
        if (!fgets(line, sizeof(line), stdin))
                return 1;
        for (int i = 0; i < n; i++) {
                Life *l = &lives[0];

                while (l < lives + AT_A_TIME && l->pid)
                        l++;
                if (l == lives + AT_A_TIME) {
                        failed |= bury(lives);
                        i--;
                        continue;
                }
                fflush(stdout); /* nothing of it is the child's to write */
                l->begin = now();
                l->pid = fork();
                if (l->pid < 0)
                        return 1;
                if (l->pid == 0)
                        live(argv[2 + i % n_folders], argv[3 + n_folders + i % n_programs]);
        }
        for (int left = 1; left;) {
                left = 0;
                for (int i = 0; i < AT_A_TIME; i++)
                        left |= lives[i].pid > 0;
                if (left)
                        failed |= bury(lives);
        }
        printf("done\n");
        return failed ? 1 : 0;
}
