-- What operators ask for and tell.
--
-- items is how many items of the conversation the payload of an attempt held,
-- items_of how many there were; 0: not noted.  attempt_next finds the attempts
-- that followed another one, which is where turns changed targets; the first
-- attempt of a turn costs it nothing.
--
-- disabled holds the targets ("provider/model") and providers that are not to
-- be asked until they are enabled again; uid is who said so.

ALTER TABLE attempt ADD COLUMN items INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt ADD COLUMN items_of INTEGER NOT NULL DEFAULT 0;

CREATE INDEX attempt_next ON attempt (id) WHERE (id & 1048575) > 1;

CREATE TABLE disabled (
	name		TEXT PRIMARY KEY NOT NULL,
	since_us	INTEGER NOT NULL,
	uid		INTEGER NOT NULL
) STRICT;
