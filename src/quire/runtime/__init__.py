"""What moves records: workers that claim, run steps and settle. Names no store."""
