-- What of a conversation a target was not told, because its window could not
-- hold it.
--
-- omitted_turns and omitted_items count what the payload of a call left out of
-- the history.  tokens_estimated is what we took the payload for, which stands
-- beside what the provider counted (tokens_in); 0: nobody asked.

ALTER TABLE attempt ADD COLUMN tokens_estimated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt ADD COLUMN omitted_turns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt ADD COLUMN omitted_items INTEGER NOT NULL DEFAULT 0;
