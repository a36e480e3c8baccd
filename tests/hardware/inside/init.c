/* Process 1 of the guest: mounts what Linux programs expect, runs Python on run.py with the kernel's arguments,
 * says how it ended and powers the guest off. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct { const char *path, *type; } mounts[] = {
	{"/proc", "proc"}, {"/sys", "sysfs"}, {"/dev", "devtmpfs"}, {"/tmp", "tmpfs"},
	{"/sys/kernel/tracing", "tracefs"}, {"/sys/fs/cgroup", "cgroup2"},
};

static const char *const environment[][2] = {
	{"PATH", "/opt/bin:/usr/bin:/bin"}, {"PYTHONPATH", "/opt/site"}, {"HOME", "/tmp"}, {"TERM", "dumb"},
	{"LANG", "C.UTF-8"},
	/* Repeatable counts: no random hashing, one thread in numpy's linear algebra. */
	{"PYTHONHASHSEED", "0"}, {"OPENBLAS_NUM_THREADS", "1"}, {"PYTHONDONTWRITEBYTECODE", "1"},
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; i < sizeof mounts / sizeof *mounts; i++) {
		mkdir(mounts[i].path, 0755);
		if (mount(mounts[i].type, mounts[i].path, mounts[i].type, 0, 0))
			perror(mounts[i].path);
	}
	chmod("/tmp", 01777);
	clearenv();
	for (unsigned i = 0; i < sizeof environment / sizeof *environment; i++)
		setenv(environment[i][0], environment[i][1], 1);
	if (chdir("/tmp"))
		perror("/tmp");

	char *command[64] = {"/usr/bin/python3.11", "/opt/inside/run.py"};
	int words = 2;
	for (int i = 1; i < argc && words < 63; i++)
		command[words++] = argv[i];
	pid_t tests = fork();
	if (tests == 0) {
		execv(command[0], command);
		perror(command[0]);
		_exit(127);
	}
	int status = -1, ended;
	for (pid_t pid; (pid = wait(&ended)) > 0;) /* orphans come to process 1 as well */
		if (pid == tests) {
			status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
			break;
		}
	printf("@status %d\n", status);
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
