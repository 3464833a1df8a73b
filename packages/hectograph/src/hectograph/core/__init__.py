"""What every API shares: requests and answers, errors, quotas, faults, the clock, field masks and schemas."""
