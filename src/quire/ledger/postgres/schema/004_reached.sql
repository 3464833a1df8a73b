-- How far claims have come in the queue of a step, as one number (see ledger/postgres_heads.py). A sequence, because
-- what a transaction writes there is seen by others at once. It is a hint: whatever it says, nothing is lost.
CREATE SEQUENCE reached;
