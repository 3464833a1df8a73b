-- What people look for among many that have ended or wait.
CREATE INDEX records_noticed ON records (status, record_id) WHERE (status = 'ERROR' OR status = 'NEEDS_APPROVAL');
