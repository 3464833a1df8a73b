-- The idempotency key of an act is stored with its intent, and so is what was prepared for it, and who acts.
ALTER TABLE receipts ADD COLUMN act_key TEXT NOT NULL DEFAULT '';
ALTER TABLE receipts ADD COLUMN prepared TEXT NOT NULL DEFAULT '';
ALTER TABLE receipts ADD COLUMN actor TEXT NOT NULL DEFAULT '';
