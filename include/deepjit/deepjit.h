/* SPDX-License-Identifier: MIT */
/*
 * deepjit/deepjit.h: everything a host program needs. The parts can be included one by one:
 *   base.h      status, errors, logging        compile.h  options, artifacts, dj_compile
 *   runtime.h   configuration, runtimes        launch.h   kernels, arguments, dj_launch
 *   cache.h     cache roots and entries        host.h     the CPU back end
 *   cuda.h      NVIDIA GPUs
 *
 * deepjit/kernel.h is not among them: it is for kernel sources.
 */
#ifndef DEEPJIT_H
#define DEEPJIT_H

#include <deepjit/base.h>
#include <deepjit/cache.h>
#include <deepjit/compile.h>
#include <deepjit/cuda.h>
#include <deepjit/host.h>
#include <deepjit/launch.h>
#include <deepjit/runtime.h>

#endif
