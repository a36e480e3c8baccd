/* A task of uneven pace for the study of multiplexing: `phases ROUNDS [SEED]`. Each round is a stretch of user code of random
 * length and a number of system calls, so that events of user mode come and go. Says "ready", waits for a byte, works, ends. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t state;

static uint64_t upto(uint64_t most)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % most + 1;
}

static void spin(uint64_t passes)
{
#if defined(__aarch64__)
	__asm__ volatile("1: subs %0, %0, #1\n b.ne 1b" : "+r"(passes) : : "cc");
#else
	__asm__ volatile("1: dec %0\n jnz 1b" : "+r"(passes) : : "cc");
#endif
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 100;
	char byte;
	state = 88172645463325252ull * (argc > 2 ? strtoull(argv[2], 0, 0) : 1);
	if (write(1, "ready\n", 6) < 0 || read(0, &byte, 1) < 0)
		return 1;
	while (rounds--) {
		spin(upto(2000000)); /* up to 16 ms of guest time, and so are the calls */
		for (uint64_t calls = upto(700); calls; calls--)
			syscall(SYS_getppid);
	}
	return 0;
}
