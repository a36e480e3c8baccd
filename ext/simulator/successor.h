/* A program that the simulated one executes is simulated too: its execve(2) becomes that of the emulator with the same
 * plugin and options. QEMU itself would run it as it is. Whatever cannot be taken over is left to QEMU. */
#ifndef SUCCESSOR_H
#define SUCCESSOR_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "qemu_api.h"

#if defined __x86_64__
enum { EXECVE = 59, OUR_MACHINE = EM_X86_64 };
#else
enum { EXECVE = 221, OUR_MACHINE = EM_AARCH64 };
#endif

static char emulator_path[PATH_MAX], *plugin_option;

/* "PLUGIN,key=value,..." as QEMU was given it. */
static void remember_options(int count, char **argument)
{
    Dl_info own;
    ssize_t length = readlink("/proc/self/exe", emulator_path, sizeof emulator_path - 1);
    if (length <= 0 || !dladdr((void *)remember_options, &own))
        return;
    emulator_path[length] = 0;
    size_t size = strlen(own.dli_fname) + 1;
    for (int i = 0; i < count; i++)
        size += strlen(argument[i]) + 1;
    plugin_option = malloc(size);
    strcpy(plugin_option, own.dli_fname);
    for (int i = 0; i < count; i++)
        strcat(strcat(plugin_option, ","), argument[i]);
}

extern uintptr_t guest_base __attribute__((weak)); /* what QEMU adds to the program's addresses; 0 on 64-bit */

/* The program's addresses are ours; a wrong pointer must be an error of its own. */
static bool readable(uint64_t address)
{
    char byte;
    if (&guest_base && guest_base)
        return false;
    struct iovec to = {&byte, 1}, from = {(void *)address, 1};
    return address && process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

/* 1: a program of our processor, 2: a script, whose interpreter and argument are then in `line`; 0: anything else. */
static int kind_of(const char *path, char *line, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, line, size - 1);
    if (file >= 0)
        close(file);
    const Elf64_Ehdr *head = (const void *)line;
    if (length < (ssize_t)sizeof *head && !(length > 2 && line[0] == '#'))
        return 0;
    line[length] = 0;
    if (!memcmp(line, ELFMAG, SELFMAG))
        return head->e_ident[EI_CLASS] == ELFCLASS64 && head->e_machine == OUR_MACHINE;
    char *end = strchr(line, '\n');
    if (line[0] != '#' || line[1] != '!' || !end)
        return 0;
    *end = 0;
    return 2;
}

static void before_syscall(plugin_id id, unsigned cpu, int64_t number, uint64_t path_at, uint64_t arguments_at,
                           uint64_t environment_at, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    (void)id, (void)cpu, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number != EXECVE || !plugin_option || !readable(path_at) || !readable(arguments_at) || !readable(environment_at))
        return;
    char line[sizeof(Elf64_Ehdr) + PATH_MAX] __attribute__((aligned(8))), *path = (char *)path_at, **argument = (char **)arguments_at;
    int kind = strcmp(path, "/proc/self/exe") && !access(path, X_OK) ? kind_of(path, line, sizeof line) : 0;
    if (!kind)
        return;
    size_t count = 0, at = 0;
    while (argument[count])
        count++;
    char **ours = calloc(count + 12, sizeof *ours);
    ours[at++] = emulator_path;
    ours[at++] = "-cpu", ours[at++] = "max";
    ours[at++] = "-plugin", ours[at++] = plugin_option;
    if (kind == 1) {
        if (count)
            ours[at++] = "-0", ours[at++] = argument[0];
    } else { /* as the kernel does: interpreter, the rest of the line as one argument, the script */
        char *rest, *interpreter = line + 2 + strspn(line + 2, " \t");
        if ((rest = strpbrk(interpreter, " \t"))) {
            *rest++ = 0;
            rest += strspn(rest, " \t");
        }
        ours[at++] = interpreter;
        if (rest && *rest)
            ours[at++] = rest;
    }
    ours[at++] = path;
    for (size_t i = 1; i < count; i++)
        ours[at++] = argument[i];
    execve(emulator_path, ours, (char **)environment_at);
    free(ours);
}
#endif
