-- The first schema: meta, tenants, API keys, sessions, turns, items, parts,
-- attempts.
--
-- Times are wall time in microseconds.  Public ids are text; every reference
-- between tables is a row number.  Columns named "sealed" hold a nonce, the
-- ciphertext and a tag, bound to tenant, session, turn, index and column.
--
-- Children of a turn are numbered inside their own row number
-- (turn << 20 | index), so that the rows of one turn lie side by side and
-- need no index of their own: one page less in every commit.

CREATE TABLE meta (
	name		TEXT PRIMARY KEY NOT NULL,
	num		INTEGER NOT NULL
) STRICT;

-- Programs whose newest step is below min_reader refuse the database.
INSERT INTO meta (name, num) VALUES ('min_reader', 1);
-- Counted up at each start; leases of an earlier boot are void.
INSERT INTO meta (name, num) VALUES ('boot', 0);

-- Which steps made this database, from which text (SHA-256).
CREATE TABLE migration (
	step		INTEGER PRIMARY KEY NOT NULL,
	name		TEXT NOT NULL,
	sum		BLOB NOT NULL,
	applied_us	INTEGER NOT NULL
) STRICT;

-- A probe sealed under each master key tells whether a key file is the one.
CREATE TABLE master_key (
	id		INTEGER PRIMARY KEY NOT NULL,
	probe		BLOB NOT NULL,
	created_us	INTEGER NOT NULL
) STRICT;

CREATE TABLE tenant (
	id		INTEGER PRIMARY KEY NOT NULL,
	name		TEXT NOT NULL UNIQUE,
	created_us	INTEGER NOT NULL
) STRICT;

-- Only a keyed hash of the secret is kept.
CREATE TABLE api_key (
	id		INTEGER PRIMARY KEY NOT NULL,
	public		TEXT NOT NULL UNIQUE,
	tenant		INTEGER NOT NULL REFERENCES tenant (id),
	label		TEXT NOT NULL,
	hash		BLOB NOT NULL,
	created_us	INTEGER NOT NULL,
	revoked_us	INTEGER NOT NULL DEFAULT 0
) STRICT;

-- owner_* to lease_turn are the lease: free when owner_inc is 0 or names a
-- process life that is over.  fence moves with every new owner.
CREATE TABLE session (
	id		INTEGER PRIMARY KEY NOT NULL,
	public		TEXT NOT NULL UNIQUE,
	tenant		INTEGER NOT NULL REFERENCES tenant (id),
	name		TEXT,
	key_id		INTEGER NOT NULL,
	wrapped		BLOB NOT NULL,
	created_us	INTEGER NOT NULL,
	updated_us	INTEGER NOT NULL,
	rev		INTEGER NOT NULL DEFAULT 0,
	n_turns		INTEGER NOT NULL DEFAULT 0,
	head		INTEGER NOT NULL DEFAULT 0,
	owner_slot	INTEGER NOT NULL DEFAULT 0,
	owner_inc	INTEGER NOT NULL DEFAULT 0,
	fence		INTEGER NOT NULL DEFAULT 0,
	lock_since	INTEGER NOT NULL DEFAULT 0,
	lease_turn	INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE UNIQUE INDEX session_name ON session (tenant, name)
	WHERE name IS NOT NULL;

-- Turns form a tree; seq counts them within the session in order of arrival.
-- chain is the integrity chain after the turn's last item, view the chain of
-- what the client sees up to here.  state: 1 queued, 2 open, 3 complete,
-- 4 incomplete, 5 failed, 6 interrupted, 7 canceled.
CREATE TABLE turn (
	id		INTEGER PRIMARY KEY NOT NULL,
	public		TEXT NOT NULL,
	session		INTEGER NOT NULL REFERENCES session (id),
	seq		INTEGER NOT NULL,
	parent		INTEGER NOT NULL DEFAULT 0,
	retry_of	INTEGER NOT NULL DEFAULT 0,
	state		INTEGER NOT NULL CHECK (state BETWEEN 1 AND 7),
	stream		INTEGER NOT NULL DEFAULT 0,
	route		TEXT NOT NULL DEFAULT '',
	owner_slot	INTEGER NOT NULL,
	owner_inc	INTEGER NOT NULL,
	n_items		INTEGER NOT NULL DEFAULT 0,
	view_items	INTEGER NOT NULL DEFAULT 0,
	chain		BLOB NOT NULL,
	view		BLOB NOT NULL,
	lead_digest	BLOB NOT NULL,
	input_digest	BLOB NOT NULL,
	created_us	INTEGER NOT NULL,
	started_us	INTEGER NOT NULL DEFAULT 0,
	ended_us	INTEGER NOT NULL DEFAULT 0,
	finish_reason	TEXT,
	error_class	TEXT,
	status		INTEGER NOT NULL DEFAULT 0,
	UNIQUE (session, seq)
) STRICT;

-- Queued and open turns: the queue of a session, and what recovery must find
-- without reading all turns.
CREATE INDEX turn_live ON turn (session, seq) WHERE state <= 2;

-- Sealed blobs of a turn that its row must not carry, because the row is
-- rewritten when the turn ends.  index 1: parameters, 2: the request while
-- the turn is queued.
CREATE TABLE turn_blob (
	id		INTEGER PRIMARY KEY NOT NULL,
	turn		INTEGER AS (id >> 20) VIRTUAL,
	kind		INTEGER AS (id & 1048575) VIRTUAL,
	sealed		BLOB NOT NULL
) STRICT;

-- idx counts input and output items of a turn together.  chain covers all
-- predecessors on the path.  kind: 1 message, 2 tool call, 3 tool result.
-- role: 1 system, 2 developer, 3 user, 4 assistant, 5 tool.  origin:
-- 1 client, 2 model, 3 gateway.  The blobs stand last so that digests can be
-- read without them.
CREATE TABLE item (
	id		INTEGER PRIMARY KEY NOT NULL,
	turn		INTEGER AS (id >> 20) VIRTUAL,
	idx		INTEGER AS (id & 1048575) VIRTUAL,
	output		INTEGER NOT NULL,
	kind		INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 3),
	role		INTEGER NOT NULL CHECK (role BETWEEN 1 AND 5),
	origin		INTEGER NOT NULL CHECK (origin BETWEEN 1 AND 3),
	lead		INTEGER NOT NULL,
	anchor		INTEGER NOT NULL DEFAULT 0,
	digest		BLOB NOT NULL,
	chain		BLOB NOT NULL,
	heard_digest	BLOB,
	sidecar_of	TEXT,
	heard_sealed	BLOB,
	sidecar_sealed	BLOB,
	body_sealed	BLOB NOT NULL
) STRICT;

-- Text of a stream under way; becomes an item when the turn ends.
CREATE TABLE part (
	id		INTEGER PRIMARY KEY NOT NULL,
	turn		INTEGER AS (id >> 20) VIRTUAL,
	seq		INTEGER AS (id & 1048575) VIRTUAL,
	sealed		BLOB NOT NULL
) STRICT;

-- Calls of targets within a turn.  ended_us 0: under way.
CREATE TABLE attempt (
	id		INTEGER PRIMARY KEY NOT NULL,
	turn		INTEGER AS (id >> 20) VIRTUAL,
	n		INTEGER AS (id & 1048575) VIRTUAL,
	target		TEXT NOT NULL,
	started_us	INTEGER NOT NULL,
	ended_us	INTEGER NOT NULL DEFAULT 0,
	class		TEXT,
	reason		TEXT,
	http_status	INTEGER NOT NULL DEFAULT 0,
	first_token_us	INTEGER NOT NULL DEFAULT 0,
	total_us	INTEGER NOT NULL DEFAULT 0,
	bytes_out	INTEGER NOT NULL DEFAULT 0,
	bytes_in	INTEGER NOT NULL DEFAULT 0,
	tokens_in	INTEGER NOT NULL DEFAULT -1,
	tokens_out	INTEGER NOT NULL DEFAULT -1
) STRICT;
