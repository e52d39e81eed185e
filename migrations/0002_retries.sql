-- Retries: which request a turn answered, so that the same one is answered
-- once, and whether the end of its answer was handed to the client.
--
-- idem is a keyed hash of tenant and Idempotency-Key, of the one turn that
-- stands for that key.  request is a keyed hash of the request as it came.
-- delivered_us is when the whole response had been given to the kernel; 0:
-- not noted; -1: the client left before.  The tokens are what the client was
-- told.

ALTER TABLE turn ADD COLUMN idem BLOB;
ALTER TABLE turn ADD COLUMN request BLOB;
ALTER TABLE turn ADD COLUMN delivered_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turn ADD COLUMN tokens_in INTEGER NOT NULL DEFAULT -1;
ALTER TABLE turn ADD COLUMN tokens_out INTEGER NOT NULL DEFAULT -1;
ALTER TABLE turn ADD COLUMN tokens_cached INTEGER NOT NULL DEFAULT -1;
ALTER TABLE turn ADD COLUMN tokens_reasoning INTEGER NOT NULL DEFAULT -1;

CREATE UNIQUE INDEX turn_idem ON turn (idem) WHERE idem IS NOT NULL;
