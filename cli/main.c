/* specscope: an oscilloscope for speculative decoding. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "base/program.h"
#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "cli/options/option_table.h"

#define STACK_LEAST (512 * 1024) /* bytes; a run needs between 192 and 256 KiB */

int
main(int argc, char **argv)
{
    struct err err = {0};
    program_called(argv[0]);
    signal(SIGXFSZ, SIG_IGN); /* a file over the size limit is then an error of write() */
    errno = 0;
    if (setlocale(LC_ALL, "") == NULL && errno == ENOMEM) { /* the screen would look different without the locale */
        err_set(&err, ERR_WORK, "out of memory for the locale");
        return command_failed(&err);
    }
    setlocale(LC_NUMERIC, "C");
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < STACK_LEAST) {
        err_set(&err, ERR_WORK, "the stack may have only %llu KiB, and %d are needed; raise the limit: ulimit -s 8192",
                (unsigned long long)stack.rlim_cur / 1024, STACK_LEAST / 1024);
        return command_failed(&err);
    }
    json_memory_watch();
    int words;
    const struct command_row *command = command_named(argc, argv, &words);
    const int status = options_run(command->command, argc - words, argv + words);
    if (status == 0 && !stream_close(stdout, "stdout", &err)) /* buffered output may still fail */
        return command_failed(&err);
    return status;
}
