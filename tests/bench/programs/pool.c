/* pool COUNT SECONDS: so many processes that sleep, each waking once in SECONDS; all end with the first one. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void pause_for(double seconds)
{
	struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (time_t)seconds) * 1e9)};
	nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 200;
	double every = argc > 2 ? atof(argv[2]) : 10;
	for (int i = 0; i < count; i++) {
		pid_t child = fork();
		if (child < 0) {
			perror("fork");
			return 1;
		}
		if (child)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause_for(every * (i % 1000) / 1000); /* spread over the period */
		for (;;) {
			for (volatile int work = 0; work < 1000; work++)
				;
			pause_for(every);
		}
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
