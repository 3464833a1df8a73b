"""Forms v1: forms as files in Drive, answers of people, watches, and the sheet that takes the answers."""
