/* pingpong CPU SECONDS RATE: two processes on one CPU pass a byte to and fro; RATE switches a second, 0 = as many as can be.
 * Prints the CPU time of both per context switch, in ns, and the switches per second. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double cpu(const struct rusage *u)
{
	return u->ru_utime.tv_sec + u->ru_stime.tv_sec + (u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
	int there[2], back[2];
	double seconds = argc > 2 ? atof(argv[2]) : 1, rate = argc > 3 ? atof(argv[3]) : 0, start, end;
	struct rusage own, child;
	char byte = 0;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(argc > 1 ? atoi(argv[1]) : 0, &set);
	if (sched_setaffinity(0, sizeof set, &set) || pipe(there) || pipe(back)) {
		perror("pingpong");
		return 1;
	}
	if (fork() == 0) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	start = now();
	for (long round = 0; (end = now()) < start + seconds; round++) {
		double ahead = rate ? start + 2 * round / rate - end : 0; /* two switches a round */
		if (ahead > 1e-3) {
			struct timespec t = {.tv_nsec = (long)(ahead * 1e9) % 1000000000};
			nanosleep(&t, NULL);
		}
		for (int i = 0; i < (rate ? 1 : 100); i++)
			if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
				return 1;
	}
	close(there[1]);
	wait(NULL);
	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &child);
	long switches = own.ru_nvcsw + own.ru_nivcsw + child.ru_nvcsw + child.ru_nivcsw;
	printf("%.1f %.0f\n", (cpu(&own) + cpu(&child)) * 1e9 / switches, switches / (end - start));
	return 0;
}
