/*
 * The master process: owns lock, sockets, scoreboard and children; serves
 * nobody itself.
 */
#ifndef HF_WORKERS_MASTER_H
#define HF_WORKERS_MASTER_H

#include "base/hf.h"

/* Runs until the service has ended; returns the exit code. */
int hf_master_run(const char *conf_path) HF_MUST_CHECK;

#endif
