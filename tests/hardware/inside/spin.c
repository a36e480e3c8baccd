/* A program of known length: `spin PASSES [PIECES [HOW]]` executes PASSES times two instructions, cut into PIECES
 * (1) with something in between, HOW: yield (default), sleep, fork, thread.  It says "ready", waits for a byte, works,
 * says "done" and waits for the end of its input, so that a test can attach before and read after.  With standard
 * input closed or /dev/null it just works and ends. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) void spin(uint64_t passes)
{
	if (!passes)
		return;
#if defined(__aarch64__)
	__asm__ volatile("1: subs %0, %0, #1\n b.ne 1b" : "+r"(passes) : : "cc");
#elif defined(__riscv)
	__asm__ volatile("1: addi %0, %0, -1\n bnez %0, 1b" : "+r"(passes));
#elif defined(__x86_64__)
	__asm__ volatile("1: dec %0\n jnz 1b" : "+r"(passes) : : "cc");
#else
#error no loop of known length for this architecture
#endif
}

static void *spin_thread(void *passes)
{
	spin((uintptr_t)passes);
	return 0;
}

static void piece(uint64_t passes, const char *how)
{
	if (!strcmp(how, "fork")) {
		if (fork() == 0) {
			spin(passes);
			_exit(0);
		}
		wait(0);
	} else if (!strcmp(how, "thread")) {
		pthread_t thread;
		if (!pthread_create(&thread, 0, spin_thread, (void *)(uintptr_t)passes))
			pthread_join(thread, 0);
	} else {
		spin(passes);
		if (!strcmp(how, "sleep"))
			usleep(1000);
		else
			sched_yield();
	}
}

int main(int argc, char **argv)
{
	uint64_t passes = argc > 1 ? strtoull(argv[1], 0, 0) : 1000000;
	uint64_t pieces = argc > 2 ? strtoull(argv[2], 0, 0) : 1;
	const char *how = argc > 3 ? argv[3] : "yield";
	char byte;
	if (write(1, "ready\n", 6) < 0 || read(0, &byte, 1) < 0)
		return 1;
	for (uint64_t i = 0; i < pieces; i++)
		piece(passes / pieces + (i < passes % pieces), how);
	if (write(1, "done\n", 5) < 0)
		return 1;
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
