/*
 * One request at a faithful provider, from its answer's being known to its
 * end on the wire.  Internal to the providers; the event loop's thread.
 */
#ifndef HF_BENCH_JOB_H
#define HF_BENCH_JOB_H

#include "bench/dialect.h"
#include "bench/server.h"
#include "bench/stream.h"

/* rq->arg; freed when its answer ends or its client goes. */
struct hf_job {
	const struct hf_bench_dialect *d;
	struct hf_bench_fault fault;
	struct hf_stream stream;
	struct hf_cut cut; /* where it fails */
	struct hf_buf plain;
	unsigned next;	   /* piece to send */
	unsigned chunk_ms; /* between pieces */
	bool streaming, array;
	size_t sent; /* of 'plain', when it dribbles */
	int alarm_fd;
	char id[32], user[80];
};

/* Frees it. */
void hf_job_free(struct hf_sreq *rq);
/* Makes rq's job. */
struct hf_job *hf_job_new(
    struct hf_sreq *rq, const struct hf_bench_dialect *d, uint64_t serial);
/* Answer, or fail, as the job's fault says.  Takes the job over. */
void hf_job_run(struct hf_sreq *rq);
/* Answer, as the job's fault says, with a status.  The same. */
void hf_job_fail(struct hf_sreq *rq);
/* Answer with this refusal instead.  The same. */
void hf_job_refuse(struct hf_sreq *rq, const struct hf_refusal *r);

#endif
