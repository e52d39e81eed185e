/*
 * A layer over the operating system's file calls for connections that write:
 * the frames of a transaction reach the write-ahead log in few large writes.
 */
#ifndef HF_STORE_WAL_FILE_H
#define HF_STORE_WAL_FILE_H

/* Registers it, once per process; the name to open a database with. */
const char *hf_wal_file_vfs(void);

#endif
