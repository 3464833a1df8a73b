-- The sweep after a halt looks for open records of an older epoch: it must not read those that have ended.
CREATE INDEX records_open ON records (epoch, workflow) WHERE status IN ('PENDING', 'WAITING', 'NEEDS_APPROVAL');
