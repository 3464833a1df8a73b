"""What users declare: workflows, steps, effects, retries, approvals and sources, checked when they are loaded."""
