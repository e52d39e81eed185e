-- What was delivered, apart from what was generated; and times that only the
-- log had.
--
-- said is the size of a turn's answer, the bytes of its text; -1: not noted.
-- heard is how many of them were given to the client's connection; -1: not
-- noted, which counts as all.  What of them the history holds stands beside
-- the item.  gone_us is when the client left before the end; 0: it did not.
--
-- called_us is when an attempt's call began, which is later than its row was
-- made; 0: it did not, or is under way.  from_bytes is how much of the answer
-- was there already, which the attempt went on with.

ALTER TABLE turn ADD COLUMN said INTEGER NOT NULL DEFAULT -1;
ALTER TABLE turn ADD COLUMN heard INTEGER NOT NULL DEFAULT -1;
ALTER TABLE turn ADD COLUMN gone_us INTEGER NOT NULL DEFAULT 0;

ALTER TABLE attempt ADD COLUMN called_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt ADD COLUMN from_bytes INTEGER NOT NULL DEFAULT 0;
