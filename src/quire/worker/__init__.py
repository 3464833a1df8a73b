"""What moves records: workers claim them, run their steps and commit what came of them."""
