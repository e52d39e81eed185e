/*
 * Files of this folder that are part of the program; made by embed.sh.
 */
#ifndef HF_BENCH_EMBEDDED_H
#define HF_BENCH_EMBEDDED_H

extern const char hf_calibration_json[];
extern const char hf_report_css[];
extern const char hf_audit_js[];

#endif
