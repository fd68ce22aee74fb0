/* The check backend for tests: the CPU backend on a worker thread, as asynchronous as an accelerator. A call copies its
 * request into a queue and returns; the worker compares the request with a record of what was computed, and runs it;
 * results are withheld until wait(). So code that reads a result too early, changes an argument's memory too early, or
 * uses what was never computed fails on every machine. */
#pragma once

#include "kernels/backend.h"

extern const struct backend_ops check_backend;
